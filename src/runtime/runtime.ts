/** The public face of a runtime, typed per agent. */
import type {
  AgentContext,
  AgentDefinition,
  AgentEvent,
  AgentInput,
  AgentName,
  AgentOutput,
  AgentStateValue,
} from '../machines/define-agent.ts';
import type { ListFilter } from '../persistence/store.ts';
import type { LedgerEntry, RunRecord } from '../records.ts';
import type { SendOptions, Verdict } from './deliver.ts';
import type { Verification } from './verify.ts';
import type { RunView } from './view.ts';
import type { Worker } from './worker.ts';

export interface StartOptions<I = unknown> {
  /** Default: a new id. Starting twice with one id and equal agent and input gives the same run. */
  runId?: string;
  input: I;
  /** Default `default`. */
  tenant?: string;
  createdBy?: string;
  /** At this time the run gets DEADLINE_EXCEEDED if the chart takes it, else it is cancelled. */
  deadlineAtMs?: number;
  budget?: RunRecord['budget']['limit'];
  subject?: string;
  labels?: Record<string, string>;
  /** W3C trace context. */
  traceparent?: string;
}

export interface WaitOptions<V = RunView> {
  /** `final` (default): done, failed or cancelled. `idle`: that, or nothing moves it now but an event, timer or person. */
  until?: 'final' | 'idle' | ((view: V) => boolean);
  /** Default 30,000. */
  timeoutMs?: number;
}

type AgentByName<A extends AgentDefinition, N> = Extract<A, { name: N }>;
type ViewOf<A> = A extends AgentDefinition ? RunView<AgentStateValue<A>, AgentContext<A>, AgentOutput<A>> : never;

export interface Runtime<A extends AgentDefinition> {
  /**
   * Starts a run; it is stored when this returns. A repeated start with equal agent and input returns the run.
   * @throws INVALID_INPUT, INVALID_ID, AGENT_UNKNOWN, RUN_EXISTS, RUN_NOT_STARTED, STRUCTURE_CHANGED
   */
  start<N extends AgentName<A>>(
    agent: N,
    options: StartOptions<AgentInput<AgentByName<A, N>>>,
  ): Promise<ViewOf<AgentByName<A, N>>>;
  /**
   * Stores an event and waits for its verdict. A refusal is an answer, not an error.
   * @throws RUN_NOT_FOUND, INVALID_ID, EVENT_TOO_LARGE, INBOX_FULL
   */
  send(runId: string, event: AgentEvent<A>, options?: SendOptions): Promise<Verdict>;
  /** One store call, of the same cost however long the run is. @throws RUN_NOT_FOUND */
  view(runId: string): Promise<ViewOf<A>>;
  /** @throws WAIT_TIMEOUT with the last view in `details` */
  wait(runId: string, options?: WaitOptions<ViewOf<A>>): Promise<ViewOf<A>>;
  list(filter?: ListFilter): Promise<{ runs: ViewOf<A>[]; cursor: string | null }>;
  history(runId: string, options?: { fromSequence?: number }): AsyncIterable<LedgerEntry>;
  /** The ledger as it grows; ends when the run is closed or `signal` aborts. */
  watch(runId: string, options?: { fromSequence?: number; signal?: AbortSignal }): AsyncIterable<LedgerEntry>;
  /** No attempt is begun any more; running calls are aborted and settled, then the run is `cancelled`. */
  cancel(runId: string, options: { by: string; reason: string; eventId?: string; waitMs?: number }): Promise<Verdict>;
  /** A person says how an unknown or escalated operation ended. @throws OPERATION_NOT_FOUND, OPERATION_SETTLED */
  resolve(
    runId: string,
    operationId: string,
    as: {
      as: 'succeeded' | 'failed' | 'not_executed';
      output?: unknown;
      by: string;
      evidence: string;
      waitMs?: number;
    },
  ): Promise<Verdict>;
  /** A run that needs a human goes on: what threw is reduced again, what was unknown is asked again. */
  release(runId: string, options: { by: string; reason: string; eventId?: string; waitMs?: number }): Promise<Verdict>;
  verify(runId: string): Promise<Verification>;
  /** A standing worker in this process. */
  work(options?: { concurrency?: number; leaseMs?: number }): Worker;
  /** Works one run inside a request; no standing worker needed. @throws WAIT_TIMEOUT */
  drive(runId: string, options?: WaitOptions<ViewOf<A>>): Promise<ViewOf<A>>;
  /** Stops the workers and closes the store. */
  close(): Promise<void>;
}
