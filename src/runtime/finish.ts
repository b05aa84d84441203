/** What is computed at the end of a draft and stored: finished or not, status, the next action and why the run waits. */
import { possibleEvents } from '../machines/classify.ts';
import type { Json, NextAction, Operation, RunRecord, RunStatus, RunSummary } from '../records.ts';
import { earliestTimer, movableAtMs } from './choose.ts';
import { isStopped, type Draft } from './draft.ts';

/** Operations in these states keep a run from being finished; an escalated one too, until a person has resolved it. */
const UNSETTLED: ReadonlySet<Operation['status']> = new Set([
  'intended',
  'blocked',
  'attempted',
  'unknown',
  'not_executed',
  'compensating',
  'escalated',
]);

/** The least time between two commits that change nothing. */
const IDLE_MS = 50;

export function finishDraft(draft: Draft): void {
  const { record } = draft;
  if (!isStopped(record) && !isEscalated(record, record.escalation?.operationId)) {
    record.escalation = nextEscalation(record, draft.nowMs);
  }
  if (record.finishedAtMs === null && isFinished(record)) finishRun(draft);
  record.allowed = allowedEvents(draft);
  record.status = statusOf(record);
  record.next = nextAction(record);
  record.waitingFor = waitingFor(record);
  record.updatedAtMs = draft.nowMs;
}

/** What a person is asked next, once the first question is answered. */
function nextEscalation(record: RunRecord, atMs: number): RunRecord['escalation'] {
  const asked = Object.values(record.operations).find((operation) => operation.status === 'escalated');
  if (!asked) return null;
  const { operationId, reason: message } = asked;
  return { reason: 'unknown_outcome', operationId, atMs, ...(message === undefined ? {} : { message }) };
}

function isFinished(record: RunRecord): boolean {
  if (record.machine.status === 'active' && record.cancel === null) return false;
  return (
    !Object.values(record.operations).some((operation) => UNSETTLED.has(operation.status)) &&
    record.owed.length === 0 &&
    record.pending.length === 0 &&
    !isStopped(record) &&
    Object.values(record.children).every((child) => child === 'finished')
  );
}

function finishRun(draft: Draft): void {
  const { record } = draft;
  record.finishedAtMs = draft.nowMs;
  record.standing = [];
  for (const kept of record.deferred) {
    draft.entry('dropped', { eventId: kept.eventId, reason: 'run_final' }, { eventId: kept.eventId });
    draft.verdict(kept, 'dropped', 'run_final');
  }
  record.deferred = [];
  draft.entry('finished', { status: finalStatus(record), output: record.machine.output });
}

function finalStatus(record: RunRecord): RunStatus {
  if (record.cancel !== null) return 'cancelled';
  return record.machine.status === 'error' ? 'failed' : 'done';
}

function allowedEvents(draft: Draft): string[] {
  const { record } = draft;
  if (record.cancel !== null || record.machine.status !== 'active') return [];
  if (draft.macrosteps === 0 && record.cancel === draft.base.record.cancel && draft.base.sequence > 0) {
    return record.allowed;
  }
  const { definition, callerEvents } = draft.base.agent;
  return callerEvents.filter((type) => {
    try {
      return possibleEvents(definition.durable, draft.snapshot, [type]).length > 0;
    } catch {
      // Its guard throws: whoever sends it will be told.
      return false;
    }
  });
}

function statusOf(record: RunRecord): RunStatus {
  if (record.finishedAtMs !== null) return finalStatus(record);
  if (isStopped(record) || Object.keys(record.operations).some((id) => isEscalated(record, id))) return 'needs_human';
  const busy = Object.values(record.operations).some(
    (operation) => operation.status !== 'blocked' && operation.status !== 'escalated',
  );
  return busy || record.outbox.length > 0 ? 'running' : 'waiting';
}

function isEscalated(record: RunRecord, operationId: string | undefined): boolean {
  return operationId !== undefined && record.operations[operationId]?.status === 'escalated';
}

/** Exactly one, the first that applies in the order of the contract. */
export function nextAction(record: RunRecord): NextAction {
  if (record.finishedAtMs !== null) return { kind: 'none', reason: `the run is ${finalStatus(record)}` };
  const operations = Object.values(record.operations);
  const of = (operation: Operation, kind: NextAction['kind'], reason: string): NextAction => ({
    kind,
    operationId: operation.operationId,
    tool: operation.tool,
    reason,
  });
  const escalated = operations.find((operation) => operation.status === 'escalated');
  if (record.escalation !== null && isStopped(record)) {
    return {
      kind: 'await_human',
      reason: `${record.escalation.reason}: ${record.escalation.message ?? 'see the ledger'}`,
    };
  }
  if (escalated)
    return of(escalated, 'await_human', record.escalation?.message ?? escalated.reason ?? 'its outcome is not known');
  const unaskable = operations.find(
    (operation) =>
      operation.recovery === 'human' && (operation.status === 'unknown' || operation.status === 'attempted'),
  );
  if (unaskable) {
    const { attemptCount } = unaskable;
    return of(unaskable, 'await_human', `attempt ${attemptCount} may have happened and nobody can be asked about it`);
  }
  const asked = operations.find(
    (operation) =>
      operation.recovery === 'reconcile' && (operation.status === 'unknown' || operation.status === 'attempted'),
  );
  if (asked) return of(asked, 'reconcile', reconcileReason(asked));
  if (record.pending.length > 0) return { kind: 'reduce', reason: 'a completion is stored and not yet reduced' };
  const performed = operations.find((operation) => operation.status !== 'blocked');
  if (performed) return of(performed, 'execute', performReason(performed));
  if (Object.values(record.children).some((child) => child !== 'finished')) {
    return { kind: 'await_child', reason: 'a child run is not finished' };
  }
  if (operations.length > 0 || record.blocked.length > 0) {
    return { kind: 'await_event', reason: 'another owner has the same business key' };
  }
  if (record.allowed.length > 0) return { kind: 'await_event', reason: `waits for ${record.allowed.join(', ')}` };
  const timer = earliestTimer(record);
  if (timer) return { kind: 'await_timer', reason: `waits for timer ${timer.id}` };
  return { kind: 'none', reason: 'no event, timer or operation can move it' };
}

function reconcileReason(operation: Operation): string {
  const why = operation.reason === undefined ? '' : ` (${operation.reason})`;
  return operation.status === 'attempted'
    ? `attempt ${operation.attemptCount} was written; without its receipt the provider is asked before anything is repeated`
    : `the outcome of attempt ${operation.attemptCount} is not known${why}; the provider is asked`;
}

function performReason(operation: Operation): string {
  if (operation.status === 'attempted') {
    return operation.kind === 'read'
      ? `attempt ${operation.attemptCount} is under way; without its answer it is read again`
      : `attempt ${operation.attemptCount} was written; without its receipt it is performed again under the same id`;
  }
  return operation.reason ?? 'it is intended and was not attempted';
}

function waitingFor(record: RunRecord): string[] {
  if (record.finishedAtMs !== null) return [];
  const waits: string[] = [];
  if (record.escalation !== null) waits.push(record.escalation.reason);
  for (const operation of Object.values(record.operations)) {
    waits.push(`${operation.tool} ${operation.operationId} ${operation.status}`);
  }
  for (const blocked of record.blocked) waits.push(`blocked_by ${blocked.operationId}`);
  for (const timer of Object.values(record.timers)) waits.push(`timer ${timer.id}`);
  if (record.allowed.length > 0 && record.cancel === null) waits.push(`event ${record.allowed.join('|')}`);
  return waits;
}

/** When a commit that gives the lease back makes the run due. A worker that stops leaves it to the others at once. */
export function dueAfter(draft: Draft, stopping: boolean): number | null {
  const { record, nowMs } = draft;
  if (stopping && record.finishedAtMs === null) return nowMs;
  const due = dueAtMs(record, nowMs);
  // What this commit has not moved, the next one will not either: nobody is to go round in circles.
  return due !== null && draft.isIdle ? Math.max(due, nowMs + IDLE_MS) : due;
}

/** When the run is due again with nothing in its inbox: the earliest of timers and operations, not before now; or never. */
export function dueAtMs(record: RunRecord, nowMs: number): number | null {
  if (record.outbox.length > 0) return nowMs;
  if (record.finishedAtMs !== null) return null;
  let due = Infinity;
  if (!isStopped(record)) {
    const timer = earliestTimer(record);
    if (timer) due = timer.dueAtMs;
  }
  for (const operation of Object.values(record.operations)) {
    due = Math.min(due, movableAtMs(record, operation) ?? Infinity);
  }
  return due === Infinity ? null : Math.max(due, nowMs);
}

export function summaryOf(record: RunRecord): RunSummary {
  return {
    status: record.status,
    states: statePaths(record.machine.value),
    tenant: record.tenant,
    agent: record.agent,
    agentVersion: record.agentVersion,
    waitingFor: record.waitingFor,
    openApprovals: [],
    unknown: Object.values(record.operations).some((operation) => operation.status === 'unknown'),
    subject: record.subject,
    labels: record.labels,
    createdAtMs: record.createdAtMs,
    updatedAtMs: record.updatedAtMs,
  };
}

/** Every dotted path of a state value: `{ a: { b: 'c' } }` → `a`, `a.b`, `a.b.c`. */
export function statePaths(value: Json, prefix = ''): string[] {
  if (typeof value === 'string') return [prefix + value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [prefix + key, ...statePaths(inner, `${prefix}${key}.`)]);
}
