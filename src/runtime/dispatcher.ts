/** Wake-up: hints that a run may be due. They may be lost, doubled or late without harm; a sweep finds what they missed. */
export interface Dispatcher {
  hint(runId: string, atMs?: number): void | Promise<void>;
  /** Calls `onHint` until `signal` aborts. */
  listen(onHint: (runId: string) => void, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
