/** A receipt meets the record: what each outcome does to its operation and to whoever waits for it (DESIGN 3.2). */
import { digestOf } from '../json.ts';
import { backoffMs } from '../tools/backoff.ts';
import { nonJsonIn, storableText, thrownMessage } from '../tools/fault.ts';
import type { ToolDefinition } from '../tools/tool.ts';
import type { Fault, Json, Operation, Receipt } from '../records.ts';
import type { Draft } from './draft.ts';
import { windowEndMs, withdraw } from './operations.ts';

export interface ReceiptContext {
  /** The absence was judged inside the window of its attempt: it allows another attempt and nothing else. */
  soft?: boolean;
  /** The value did not fit the tool's output schema; the effect is real. */
  invalid?: Fault;
  /** The worker itself kept the call back: nothing was tried, and no retry is used up. */
  notSent?: boolean;
  /** The answer of a read: worth nothing once its attempt is not waited for. */
  read?: boolean;
  /** Chance for back-off, [0, 1). */
  random: number;
  /** Already a fact of the store: not to be named in the commit again. */
  stored: boolean;
}

/** After this many attempts whose worker died, an operation is treated as out of attempts. */
export const MAX_CRASHES = 20;

export function takeReceipt(draft: Draft, receipt: Receipt, context: ReceiptContext): void {
  const operation = draft.operation(receipt.operationId);
  if (context.read && (operation?.status !== 'attempted' || receipt.attempt < operation.attemptCount)) return;
  // A success whose value does not fit waits for a person's output, which is then the receipt.
  const settles = receipt.outcome !== 'unknown' && context.invalid === undefined;
  if (!context.stored && settles) draft.receipts.push(receipt);
  if (!context.stored || receipt.via === 'resolve') recordReceipt(draft, receipt, context);
  if (!operation) return takeLate(draft, receipt);
  const tool = draft.base.agent.toolsByName.get(operation.tool);
  switch (receipt.outcome) {
    case 'unknown':
      if (isInFlight(operation) && tool) takeUnknown(draft, operation, tool, receipt, context);
      return;
    case 'not_executed':
      if ((isInFlight(operation) || operation.status === 'escalated') && tool) {
        takeAbsence(draft, operation, tool, receipt, context);
      }
      return;
    case 'succeeded':
      return takeSuccess(draft, operation, tool, receipt, context);
    case 'failed':
      return takeFailure(draft, operation, receipt);
  }
}

/** Its latest attempt has no outcome yet. */
function isInFlight(operation: Operation): boolean {
  return operation.status === 'attempted' || operation.status === 'unknown';
}

function recordReceipt(draft: Draft, receipt: Receipt, context: ReceiptContext): void {
  const { operationId, attempt, outcome, via } = receipt;
  if (via === 'resolve') {
    const fields = { operationId, outcome, by: receipt.by ?? null, evidence: receipt.evidence ?? null };
    draft.entry('resolved', fields, { operationId });
    if (context.stored) return;
  }
  const fields = { operationId, attempt, outcome, via, receipt: receipt as unknown as Json };
  draft.entry('received', context.invalid ? { ...fields, unsettled: true } : fields, { operationId });
}

/** Nobody has this operation open: a success that came after it was closed is reported, never dropped. */
export function takeLate(draft: Draft, receipt: Pick<Receipt, 'operationId' | 'attempt' | 'outcome'>): void {
  if (receipt.outcome !== 'succeeded' || draft.record.effects[receipt.operationId]) return;
  draft.escalate('late_success', {
    operationId: receipt.operationId,
    message: `Attempt ${receipt.attempt} succeeded after the operation was closed; its effect stands in the world.`,
  });
}

/** The worker saw a success of an operation that is stored as failed: whoever looks must be able to see both. */
export function reportContradiction(draft: Draft, receipt: Receipt, stored: Receipt): void {
  const { operationId, attempt } = receipt;
  draft.entry('conflict', { operationId, attempt, stored: stored.outcome, receipt: receipt as unknown as Json });
  const message = `Attempt ${attempt} succeeded, and the operation is recorded as ${stored.outcome}; its effect stands.`;
  draft.escalate('conflicting_outcomes', { operationId, message });
}

function takeUnknown(
  draft: Draft,
  operation: Operation,
  tool: ToolDefinition,
  receipt: Receipt,
  context: ReceiptContext,
): void {
  if (receipt.attempt < operation.attemptCount) return;
  const { operationId } = operation;
  const tries = operation.tries + 1;
  const unknownSinceMs = operation.unknownSinceMs ?? draft.nowMs;
  if (tool.effect === 'read') {
    if (operation.joined.length === 0) return withdraw(draft, operationId);
    if (tries >= tool.retry.maxAttempts) return takeFailure(draft, operation, receipt);
    draft.moveOperation(operationId, 'not_executed', {
      tries,
      notBeforeMs: draft.nowMs + backoffMs(tool.retry, tries, context.random),
      reason: receipt.error?.message ?? 'no answer',
    });
    return;
  }
  draft.moveOperation(operationId, 'unknown', {
    unknownSinceMs,
    notBeforeMs: operation.recovery === 'repeat' ? draft.nowMs + backoffMs(tool.retry, tries, context.random) : 0,
    tries: operation.recovery === 'repeat' ? tries : operation.tries,
    reason: receipt.error?.message ?? 'no answer',
  });
  if (operation.recovery === 'human') needsHuman(draft, operationId, 'unknown_outcome', receipt.error?.message);
  else if (operation.recovery === 'repeat' && draft.nowMs - unknownSinceMs >= tool.reconcileForMs) {
    needsHuman(draft, operationId, 'unknown_exhausted', receipt.error?.message);
  }
}

function takeAbsence(
  draft: Draft,
  operation: Operation,
  tool: ToolDefinition,
  receipt: Receipt,
  context: ReceiptContext,
): void {
  const { operationId } = operation;
  // What one attempt says of itself, sent or not, closes no earlier one.
  const soft = context.soft === true || (receipt.via === 'execute' && operation.soft);
  if (receipt.attempt < operation.attemptCount || (soft && operation.status === 'escalated')) return;
  const byPerson = receipt.via === 'resolve';
  const tries = byPerson ? 0 : operation.tries + (context.notSent === true || operation.orphaned ? 0 : 1);
  const stopped = draft.record.cancel !== null || pastDeadline(draft);
  const wanted = operation.joined.length > 0 && !stopped;
  if (wanted && tries < tool.retry.maxAttempts && operation.crashes < MAX_CRASHES) {
    draft.moveOperation(operationId, 'not_executed', {
      soft,
      tries,
      reconciles: 0,
      unknownSinceMs: null,
      notBeforeMs: byPerson ? 0 : draft.nowMs + backoffMs(tool.retry, Math.max(tries, 1), context.random),
      reason: receipt.error?.message ?? 'proved not to have happened',
    });
    return;
  }
  if (soft) {
    draft.moveOperation(operationId, 'unknown', {
      soft,
      notBeforeMs: windowEndMs(operation, tool),
      unknownSinceMs: operation.unknownSinceMs ?? draft.nowMs,
    });
    return;
  }
  draft.moveOperation(operationId, 'not_executed', { soft: false, tries });
  if (operation.joined.length === 0) return withdraw(draft, operationId);
  draft.closeOperation(operationId, 'give_up', receipt);
  const error: Fault = {
    code: 'TOOL_NOT_EXECUTED',
    message: receipt.error?.message ?? `Operation ${operationId} did not happen after ${tries} attempts.`,
    details: { operationId, attempts: operation.attemptCount },
  };
  for (const invocationId of operation.joined) draft.complete({ invocationId, error });
}

function takeSuccess(
  draft: Draft,
  operation: Operation,
  tool: ToolDefinition | undefined,
  receipt: Receipt,
  context: ReceiptContext,
): void {
  const { operationId, joined } = operation;
  if (isContradicted(operation, tool, receipt)) {
    // There may be two effects: both facts go to a person.
    const { attemptCount: latest, status } = operation;
    draft.entry('conflict', { operationId, attempt: receipt.attempt, latest });
    const message = `Attempt ${receipt.attempt} succeeded after it was held absent and attempt ${latest} was written.`;
    draft.changeOperation(operationId, { evidence: { conflict: receipt.attempt }, reason: message });
    if (status !== 'escalated') needsHuman(draft, operationId, 'conflicting_attempts', message);
    return;
  }
  if (context.invalid && operation.kind === 'write') {
    draft.changeOperation(operationId, { evidence: context.invalid as unknown as Json });
    needsHuman(draft, operationId, 'output_invalid', context.invalid.message);
    return;
  }
  draft.closeOperation(operationId, 'succeeded', receipt);
  draft.rememberEffect(operationId, operation.tool, operation.kind);
  if (operation.kind === 'write') {
    draft.record.lastConfirmed = {
      operationId,
      tool: operation.tool,
      outcome: 'succeeded',
      receiptDigest: digestOf(receipt.output ?? null),
      atMs: draft.nowMs,
    };
  }
  const output = receipt.output ?? null;
  if (joined.length === 0) {
    if (operation.kind === 'write') {
      draft.escalate('abandoned_success', {
        operationId,
        message: `Tool '${operation.tool}' succeeded after its state was left; the effect stands.`,
      });
    }
    return;
  }
  noteStanding(draft, operation, tool, output);
  for (const invocationId of joined) draft.complete({ invocationId, output });
}

/** A success of an earlier attempt, or a second one, of a write whose provider does not know its ids. */
function isContradicted(operation: Operation, tool: ToolDefinition | undefined, receipt: Receipt): boolean {
  if (operation.kind !== 'write' || tool?.idempotent === true || receipt.via === 'resolve') return false;
  const evidence = operation.evidence as { conflict?: Json } | undefined;
  return receipt.attempt < operation.attemptCount || evidence?.conflict !== undefined;
}

/** What it would take to undo a write that stands. */
function noteStanding(draft: Draft, operation: Operation, tool: ToolDefinition | undefined, output: Json): void {
  const undo = tool?.compensate;
  if (!undo) return;
  const { operationId } = operation;
  try {
    const input = undo.input({ input: structuredClone(operation.input), output: structuredClone(output) });
    const problem = nonJsonIn(input);
    if (problem) throw new TypeError(`compensate.input${problem.path} is ${problem.found}, which is not JSON`);
    draft.list('standing').push({ operationId, compensate: { tool: undo.toolName, input: input as Json } });
  } catch (error) {
    draft.escalate('compensation_invalid', { operationId, message: storableText(thrownMessage(error)) });
  }
}

function takeFailure(draft: Draft, operation: Operation, receipt: Receipt): void {
  const { operationId } = operation;
  draft.closeOperation(operationId, 'failed', receipt);
  const error: Fault = receipt.error ?? { code: 'TOOL_FAILED', message: `Operation ${operationId} failed.` };
  for (const invocationId of operation.joined) draft.complete({ invocationId, error });
}

/** Blocks one operation until a person resolves it or releases the run; everything else of the run goes on. */
export function needsHuman(draft: Draft, operationId: string, reason: string, message?: string): void {
  if (draft.operation(operationId)?.status === 'blocked') draft.moveOperation(operationId, 'unblock');
  draft.moveOperation(operationId, 'escalate');
  draft.escalate(reason, { operationId, ...(message === undefined ? {} : { message }) });
}

export function pastDeadline(draft: Draft): boolean {
  const { deadlineAtMs } = draft.record;
  return deadlineAtMs !== null && draft.nowMs >= deadlineAtMs;
}
