/** What a commit does about open operations: recover, check, attempt, withdraw; all before it is sent. */
import { WOKEN, type Clock } from '../clock.ts';
import type { Store } from '../persistence/store.ts';
import type { Fault, Json, Operation, Receipt } from '../records.ts';
import { backoffMs } from '../tools/backoff.ts';
import { askPolicy, type Policy, type PolicyAnswer, type PolicyQuestion } from '../tools/policy.ts';
import type { RunInfo, ToolDefinition } from '../tools/tool.ts';
import { DEADLINE_TIMER, isStopped, type Draft } from './draft.ts';
import { unblock, windowEndMs, withdraw } from './operations.ts';
import { MAX_CRASHES, needsHuman, pastDeadline, takeReceipt } from './receipts.ts';

export interface PlanContext {
  policy: Policy;
  store: Store;
  clock: Clock;
  random(): number;
  /** Store time, which goes on while checks are awaited. */
  nowMs(): number;
  /** Monotonic time at which the checks of one commit must be over: nobody renews the lease meanwhile. */
  checksEndMs: number;
}

/** Back-off of a policy that threw, of a reservation held elsewhere, and of attempts whose worker died twice. */
const CHECK_RETRY = { maxAttempts: 1, minDelayMs: 500, maxDelayMs: 30_000 };

/** Plans until nothing follows. Returns true when a check failed and its completion waits in `draft.follow`. */
export async function planOperations(draft: Draft, context: PlanContext): Promise<boolean> {
  unblock(draft);
  for (const operationId of Object.keys(draft.record.operations)) recover(draft, operationId, context);
  for (const operationId of Object.keys(draft.record.operations)) {
    const operation = draft.operation(operationId);
    if (operation) await planOne(draft, operation, context);
  }
  return draft.follow.length > 0;
}

/** An attempt of an older fence, with neither a receipt nor a call in this process: its worker went away. */
function recover(draft: Draft, operationId: string, context: PlanContext): void {
  const operation = draft.operation(operationId);
  if (!operation || !isOrphan(draft, operation)) return;
  const crashes = operation.crashes + 1;
  const reason = 'its worker went away before an answer was stored';
  const notBeforeMs = crashes < 2 ? 0 : draft.nowMs + backoffMs(CHECK_RETRY, crashes - 1, context.random());
  if (operation.recovery === 'repeat' && crashes >= MAX_CRASHES) {
    const message = `${crashes} workers went away during an attempt; it may be what kills them.`;
    draft.moveOperation(operationId, 'unknown', { crashes, reason, unknownSinceMs: draft.nowMs });
    return needsHuman(draft, operationId, 'unknown_outcome', message);
  }
  switch (operation.recovery) {
    case 'repeat':
      if (operation.kind === 'read' && operation.joined.length === 0) return withdraw(draft, operationId);
      draft.moveOperation(operationId, operation.kind === 'read' ? 'not_executed' : 'unknown', {
        crashes,
        orphaned: true,
        reason,
        notBeforeMs,
        unknownSinceMs: operation.unknownSinceMs ?? draft.nowMs,
      });
      break;
    case 'reconcile':
      draft.moveOperation(operationId, 'unknown', {
        crashes,
        orphaned: true,
        reason,
        notBeforeMs: 0,
        unknownSinceMs: operation.unknownSinceMs ?? draft.nowMs,
      });
      break;
    case 'human':
      draft.moveOperation(operationId, 'unknown', { crashes, reason, unknownSinceMs: draft.nowMs });
      needsHuman(draft, operationId, 'unknown_outcome', reason);
      break;
  }
}

function isOrphan(draft: Draft, operation: Operation): boolean {
  if (operation.status !== 'attempted') return false;
  const { operationId } = operation;
  if (draft.base.calling.has(operationId) || draft.base.receipts[operationId]) return false;
  if (draft.attempts.some((attempt) => attempt.operationId === operationId)) return false;
  return (operation.attempts.at(-1)?.fence ?? -1) < draft.base.fence;
}

async function planOne(draft: Draft, operation: Operation, context: PlanContext): Promise<void> {
  const { operationId, status } = operation;
  const perform =
    status === 'intended' ||
    status === 'not_executed' ||
    status === 'blocked' ||
    (status === 'unknown' && operation.recovery === 'repeat');
  if (!perform || draft.base.calling.has(operationId) || draft.base.receipts[operationId]) return;
  const tool = draft.base.agent.toolsByName.get(operation.tool);
  if (!tool) return;
  const settling = status === 'unknown';
  if (!settling && operation.joined.length === 0) return withdraw(draft, operationId);
  if (isStopped(draft.record)) return;
  if (!settling && pastDeadline(draft)) return missDeadline(draft, operation);
  if (operation.notBeforeMs > draft.nowMs) return;
  if (needsOwnCommit(draft, operation, tool)) return;
  if (!settling && !(await passes(draft, operation, tool, context))) return;
  writeAttempt(draft, operation, tool, context.nowMs());
}

/** The attempt of such an operation is written apart from its intent, so that "not called" stays distinguishable. */
function needsOwnCommit(draft: Draft, operation: Operation, tool: ToolDefinition): boolean {
  if (operation.recovery !== 'human' && tool.scope !== 'tenant') return false;
  return draft.base.record.operations[operation.operationId] === undefined;
}

async function passes(
  draft: Draft,
  operation: Operation,
  tool: ToolDefinition,
  context: PlanContext,
): Promise<boolean> {
  const { operationId } = operation;
  const answer = await askInTime(context, {
    run: runInfo(draft),
    tool: { name: tool.name, version: tool.version, effect: tool.effect },
    input: operation.input,
    operationId,
    intendedAtMs: operation.intendedAtMs,
    by: draft.record.createdBy,
  });
  if (answer.kind === 'threw') {
    const notBeforeMs = draft.nowMs + backoffMs(CHECK_RETRY, 1, context.random());
    draft.changeOperation(operationId, { notBeforeMs, reason: `policy check threw: ${answer.message}` });
    return false;
  }
  if (answer.kind === 'denied') {
    if (answer.retryAtMs !== undefined && answer.retryAtMs > draft.nowMs) {
      draft.changeOperation(operationId, { notBeforeMs: answer.retryAtMs, reason: `policy: ${answer.reason}` });
      return false;
    }
    giveUp(draft, operation, {
      code: 'POLICY_DENIED',
      message: `The policy refused tool '${operation.tool}': ${answer.reason}`,
      details: { operationId, reason: answer.reason },
    });
    return false;
  }
  return tool.scope === 'run' || (await reserved(draft, operation, context));
}

/** A policy that does not answer in time has thrown. */
async function askInTime(context: PlanContext, question: PolicyQuestion): Promise<PolicyAnswer> {
  const { clock, policy, checksEndMs } = context;
  const asked = askPolicy(policy, question);
  if (!(asked instanceof Promise)) return asked;
  const timer = new AbortController();
  const late = clock
    .sleep(Math.max(0, checksEndMs - clock.monotonicMs()), timer.signal)
    .then((): PolicyAnswer => ({ kind: 'threw', message: 'it gave no answer in time' }));
  const answer = await Promise.race([asked, late]);
  timer.abort(WOKEN);
  return answer;
}

/** No attempt begins after the deadline. What the chart does about the deadline itself comes first. */
function missDeadline(draft: Draft, operation: Operation): void {
  if (draft.record.timers[DEADLINE_TIMER]) return;
  const { operationId, tool } = operation;
  const message = `Tool '${tool}' was not attempted${operation.attemptCount > 0 ? ' again' : ''}: the deadline is over.`;
  giveUp(draft, operation, { code: 'TOOL_NOT_EXECUTED', message, details: { operationId } });
}

/** Whoever waits gets the error, and the operation is withdrawn. */
function giveUp(draft: Draft, operation: Operation, error: Fault): void {
  const { operationId } = operation;
  // If an earlier attempt may still land, it is settled first, with nobody waiting for it.
  if (operation.soft) draft.changeOperation(operationId, { joined: [] });
  withdraw(draft, operationId);
  for (const invocationId of operation.joined) draft.complete({ invocationId, error });
}

/** Tenant scope: the key is reserved in the store after its intent is stored and before its attempt. */
async function reserved(draft: Draft, operation: Operation, context: PlanContext): Promise<boolean> {
  const { operationId } = operation;
  const { tenant, runId } = draft.record;
  const answer = await context.store.reserve({ tenant, key: operation.key, runId, intent: operation.intent });
  if (answer.receipt?.outcome === 'succeeded') {
    takeOwnersReceipt(draft, operation, answer.receipt, context);
    return false;
  }
  if (answer.owner === runId && answer.refused !== true) {
    if (operation.status === 'blocked') draft.moveOperation(operationId, 'unblock');
    return true;
  }
  const notBeforeMs = draft.nowMs + backoffMs(CHECK_RETRY, 1, context.random());
  const reason = `run ${answer.owner} has the same key`;
  if (operation.status !== 'intended') draft.changeOperation(operationId, { notBeforeMs, reason });
  else {
    draft.moveOperation(operationId, 'block', { notBeforeMs, reason });
    draft.entry('blocked', { operationId, owner: answer.owner });
  }
  return false;
}

/** Another run has done the same action: its receipt is taken, unless it was done with other input. */
function takeOwnersReceipt(draft: Draft, operation: Operation, receipt: Receipt, context: PlanContext): void {
  const { operationId, joined } = operation;
  if (receipt.inputDigest === operation.inputDigest) {
    return takeReceipt(draft, { ...receipt, operationId }, { random: context.random(), stored: false });
  }
  withdraw(draft, operationId);
  const error: Fault = {
    code: 'DUPLICATE_OPERATION',
    message: `Another run of the tenant has done tool '${operation.tool}' for the same key with other input.`,
    details: { operationId, receipt: receipt as unknown as Json },
  };
  for (const invocationId of joined) draft.complete({ invocationId, error });
}

/** Its time runs from when the checks are over, just before the commit is sent. */
function writeAttempt(draft: Draft, planned: Operation, tool: ToolDefinition, atMs: number): void {
  const { operationId } = planned;
  const number = planned.attemptCount + 1;
  const settling = planned.status === 'unknown';
  draft.moveOperation(operationId, 'attempt', {
    attemptCount: number,
    orphaned: false,
    attempts: [...planned.attempts.slice(-9), { attempt: number, fence: draft.base.fence, atMs }],
    // Inside the window of an earlier attempt that may still land, nothing this one says closes that one.
    soft: planned.kind === 'write' && (planned.soft || settling) && draft.nowMs < windowEndMs(planned, tool),
  });
  draft.attempts.push({ operationId, attempt: number });
  draft.calls.push({ operationId, attempt: number, atMs });
  draft.entry('attempted', { operationId, attempt: number });
  const { spent } = draft.record.budget;
  draft.record.budget = { ...draft.record.budget, spent: { ...spent, toolCalls: spent.toolCalls + 1 } };
}

export function runInfo(draft: Draft): RunInfo {
  return infoOf(draft.record, draft.sequence);
}

export function infoOf(record: Draft['record'], sequence: number): RunInfo {
  const { runId, tenant, agent, agentVersion, createdBy, subject, labels, traceId } = record;
  return { runId, tenant, agent, agentVersion, sequence, createdBy, subject, labels, traceId };
}
