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
  | { kind: 'reconciled'; reconciled: Reconciled };

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
  readonly #running = new Set<Promise<void>>();
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

  abort(operationId: string): void {
    this.#open.get(operationId)?.abort();
  }

  abortAll(): void {
    for (const controller of this.#open.values()) controller.abort();
  }

  /** Resolves when every call has ended. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
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
      const { wake, random, nowMs } = this.#context;
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
      return { ended: { kind: 'receipt', receipt, context, tool }, wake };
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
    const { clock, nowMs, wake } = this.#context;
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
      return { ended: { kind: 'reconciled', reconciled: { operationId, attempt, answer, beganAtMs } }, wake };
    });
  }

  #track(operationId: string, call: (signal: AbortSignal) => Promise<{ ended: Ended; wake(): void }>): void {
    const controller = new AbortController();
    this.#open.set(operationId, controller);
    const running: Promise<void> = call(controller.signal).then(({ ended, wake }) => {
      this.#open.delete(operationId);
      this.#running.delete(running);
      this.hand.push(ended);
      wake();
    });
    this.#running.add(running);
  }

  async #reached(point: CrashPoint, runId: string, operationId: string, tool: ToolDefinition): Promise<void> {
    await this.#context.crashPoints?.reached(point, { runId, operationId, tool: tool.name });
  }
}

export function operationIdOf(ended: Ended): string {
  return ended.kind === 'receipt' ? ended.receipt.operationId : ended.reconciled.operationId;
}
