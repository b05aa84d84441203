/** The tool calls under way for one run in this process, and what has come back from them. */
import type { Clock } from '../clock.ts';
import type { Operation, Receipt } from '../records.ts';
import { performAttempt, type AttemptEnd } from '../tools/attempt.ts';
import { askReconcile } from '../tools/reconcile.ts';
import type { RunInfo, ToolDefinition } from '../tools/tool.ts';
import type { CrashPoint, CrashPoints } from './crash-points.ts';
import type { PlannedCall } from './draft.ts';
import type { ReceiptContext } from './receipts.ts';
import type { Reconciled } from './reconcile-answer.ts';

export type Ended =
  | { kind: 'receipt'; receipt: Receipt; context: ReceiptContext; tool: ToolDefinition }
  | { kind: 'reconciled'; reconciled: Reconciled }
  /** A success that the store refused, because the operation is stored as failed. */
  | { kind: 'contradicted'; receipt: Receipt; stored: Receipt };

/** How long an aborted call has to end by itself when its worker has to go. */
const ABORTED_MS = 250;

export interface CallContext {
  clock: Clock;
  crashPoints: CrashPoints | undefined;
  artifacts: unknown;
  /** Store time. */
  nowMs(): number;
  random(): number;
  /** Whether the lease is surely still ours by the local monotonic clock. */
  leaseIsAlive(): boolean;
  /** Something came back. */
  wake(): void;
}

export class OpenCalls {
  readonly #context: CallContext;
  readonly #open = new Map<string, AbortController>();
  #ended: () => void = () => {};
  /** What came back and is not yet committed, oldest first. */
  readonly hand: Ended[] = [];

  constructor(context: CallContext) {
    this.#context = context;
  }

  get size(): number {
    return this.#open.size;
  }

  operationIds(): ReadonlySet<string> {
    return new Set([...this.#open.keys(), ...this.hand.map(operationIdOf)]);
  }

  /** The store has another outcome of an operation than what came back for it. */
  contradict(operationId: string, stored: Receipt): void {
    const hand = this.hand.splice(0);
    for (const ended of hand) {
      if (operationIdOf(ended) !== operationId) this.hand.push(ended);
      else if (ended.kind === 'receipt' && ended.receipt.outcome === 'succeeded') {
        this.hand.push({ kind: 'contradicted', receipt: ended.receipt, stored });
      }
    }
  }

  abort(operationId: string): void {
    this.#open.get(operationId)?.abort();
  }

  /** Aborts all, and after a moment forgets those that do not care: their answers are worth nothing here any more. */
  abortAll(): void {
    const aborted = [...this.#open];
    for (const [, controller] of aborted) controller.abort();
    void this.#context.clock.sleep(ABORTED_MS).then(() => {
      for (const [operationId, controller] of aborted) this.#end(operationId, controller, null);
    });
  }

  /** Resolves when every call has ended or is forgotten. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        this.#ended = resolve;
      });
    }
  }

  /** Starts the call of a committed attempt; `refusal` says why it must not leave. */
  execute(
    planned: PlannedCall,
    operation: Operation,
    tool: ToolDefinition,
    run: RunInfo,
    refusal: string | null,
  ): void {
    this.#track(planned.operationId, async (signal) => {
      const end = await this.#attempt(planned, operation, tool, run, refusal, signal);
      const { operationId, attempt } = planned;
      const { random, nowMs } = this.#context;
      const receipt: Receipt = {
        operationId,
        attempt,
        outcome: end.outcome,
        via: 'execute',
        atMs: nowMs(),
        ...(end.outcome === 'succeeded' ? { output: end.output } : { error: end.error }),
      };
      const context: ReceiptContext = { random: random(), stored: false, read: tool.effect === 'read' };
      if (end.outcome === 'succeeded' && end.invalid) context.invalid = end.invalid;
      if ('notSent' in end) context.notSent = true;
      return { kind: 'receipt', receipt, context, tool };
    });
  }

  async #attempt(
    planned: PlannedCall,
    operation: Operation,
    tool: ToolDefinition,
    run: RunInfo,
    refusal: string | null,
    signal: AbortSignal,
  ): Promise<AttemptEnd | (AttemptEnd & { notSent: true })> {
    const { clock, nowMs, leaseIsAlive, artifacts } = this.#context;
    const { operationId, attempt } = planned;
    const notSent = (why: string): AttemptEnd & { notSent: true } => ({
      outcome: 'not_executed',
      error: { code: 'TOOL_NOT_EXECUTED', message: `Attempt ${attempt} was not sent: ${why}.` },
      notSent: true,
    });
    if (refusal !== null) return notSent(refusal);
    await this.#reached('B2', run.runId, operationId, tool);
    if (signal.aborted) return notSent('the run left its state');
    // The last look before the world is touched: nothing may wait between this and the call.
    if (!leaseIsAlive()) return notSent('the lease was about to end');
    const timeoutMs = planned.atMs + tool.timeoutMs - nowMs();
    if (timeoutMs <= 0) return notSent('its time was over before the commit was answered');
    return performAttempt(tool, {
      input: operation.input,
      operationId,
      attempt,
      run,
      artifacts,
      signal,
      timeoutMs,
      clock,
      onSent: () => void this.#reached('B3', run.runId, operationId, tool),
      onAnswer: () => this.#reached(tool.effect === 'read' ? 'B1' : 'B4', run.runId, operationId, tool),
    });
  }

  /** Asks the provider what became of the latest attempt of an unknown operation. */
  reconcile(operation: Operation, tool: ToolDefinition, run: RunInfo): void {
    const { operationId, attemptCount: attempt } = operation;
    const { clock, nowMs } = this.#context;
    const beganAtMs = nowMs();
    this.#track(operationId, async (signal) => {
      const answer = await askReconcile(tool, {
        input: operation.input,
        operationId,
        attempt,
        signal,
        run,
        timeoutMs: tool.timeoutMs,
        clock,
      });
      return { kind: 'reconciled', reconciled: { operationId, attempt, answer, beganAtMs } };
    });
  }

  #track(operationId: string, call: (signal: AbortSignal) => Promise<Ended>): void {
    const controller = new AbortController();
    this.#open.set(operationId, controller);
    void call(controller.signal).then((ended) => this.#end(operationId, controller, ended));
  }

  #end(operationId: string, controller: AbortController, ended: Ended | null): void {
    if (this.#open.get(operationId) !== controller) return;
    this.#open.delete(operationId);
    if (ended) this.hand.push(ended);
    this.#ended();
    this.#context.wake();
  }

  async #reached(point: CrashPoint, runId: string, operationId: string, tool: ToolDefinition): Promise<void> {
    await this.#context.crashPoints?.reached(point, { runId, operationId, tool: tool.name });
  }
}

export function operationIdOf(ended: Ended): string {
  return ended.kind === 'reconciled' ? ended.reconciled.operationId : ended.receipt.operationId;
}
