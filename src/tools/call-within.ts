/** One call to an author's function within a time, ended at the latest by it: the only place that waits for authors. */
import { WOKEN, type Clock } from '../clock.ts';

export interface BoundedCall {
  call: (signal: AbortSignal) => Promise<unknown>;
  /** Of the caller, not aborted yet; passed on to the author. */
  signal: AbortSignal;
  /** From now, > 0. */
  timeoutMs: number;
  clock: Clock;
  /** Whether an abort of `signal` ends the waiting; otherwise the author's answer is waited for until the time-out. */
  leaveOnAbort: boolean;
  /** Right after `call` was invoked, before anything is awaited. */
  onSent?: (() => void) | undefined;
}

export type CallEnd =
  | { kind: 'answered'; value: unknown }
  | { kind: 'threw'; error: unknown }
  | { kind: 'timed_out' }
  | { kind: 'aborted' };

/** Never rejects, unless `onSent` throws. What the author answers later is dropped, also a rejection. */
export async function callWithin(bounded: BoundedCall): Promise<CallEnd> {
  const { signal, clock } = bounded;
  const toAuthor = new AbortController();
  const stopTimer = new AbortController();
  let onAbort = (): void => toAuthor.abort(signal.reason);
  const left = new Promise<CallEnd>((resolve) => {
    if (!bounded.leaveOnAbort) return;
    onAbort = () => {
      toAuthor.abort(signal.reason);
      resolve({ kind: 'aborted' });
    };
  });
  signal.addEventListener('abort', onAbort);
  try {
    const answer = startCall(bounded.call, toAuthor.signal);
    bounded.onSent?.();
    const timeout = clock.sleep(bounded.timeoutMs, stopTimer.signal).then((): CallEnd => ({ kind: 'timed_out' }));
    const end = await Promise.race([answer, left, timeout]);
    if (end.kind === 'timed_out') {
      toAuthor.abort(new DOMException(`no answer within ${bounded.timeoutMs} ms`, 'TimeoutError'));
    }
    return end;
  } finally {
    signal.removeEventListener('abort', onAbort);
    stopTimer.abort(WOKEN);
  }
}

/** Invoked synchronously; a synchronous throw is an end like any other. */
async function startCall(call: BoundedCall['call'], signal: AbortSignal): Promise<CallEnd> {
  try {
    return { kind: 'answered', value: await call(signal) };
  } catch (error) {
    return { kind: 'threw', error };
  }
}
