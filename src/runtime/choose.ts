/** What a worker does next with the run it holds: the one order of DESIGN 3.3 and RECORDS rule 3. */
import type { InboxEvent, Operation, Receipt, RunRecord, Timer } from '../records.ts';
import { isStopped } from './draft.ts';
import type { Ended } from './open-calls.ts';
import { isInTheWay } from './operations.ts';
import type { Item } from './reduce.ts';

export interface Choice {
  item: Item;
  /** What came back from a call and is consumed by this item. */
  ended: Ended | null;
}

export interface Situation {
  record: RunRecord;
  /** Unconsumed items in position order. */
  inbox: readonly InboxEvent[];
  /** Stored receipts of open operations. */
  receipts: Readonly<Record<string, Receipt>>;
  hand: readonly Ended[];
  /** Operations with a call under way or an answer in hand. */
  calling: ReadonlySet<string>;
  fence: number;
  nowMs: number;
  stopping: boolean;
  /** Deferred events may be legal that the last commit had no room for. */
  isCut: boolean;
  /** Outbox items delivered and not yet struck off. */
  delivered: number;
  random(): number;
}

/** Timers and stored items by time, a timer first; then stored receipts; then what is in hand; then planning. */
export function chooseItem(situation: Situation): Choice | null {
  const { record, inbox, hand, nowMs } = situation;
  const event = inbox[0];
  const timer = dueTimer(record, nowMs);
  if (timer && (!event || timer.dueAtMs <= event.atMs)) return { item: { kind: 'timer', timer }, ended: null };
  if (event) return { item: { kind: 'inbox', event }, ended: null };
  const stored = storedReceipt(record, situation.receipts);
  if (stored) {
    const context = { random: situation.random(), stored: true };
    return { item: { kind: 'receipt', receipt: stored, context }, ended: null };
  }
  const ended = hand[0];
  if (ended?.kind === 'receipt') {
    return { item: { kind: 'receipt', receipt: ended.receipt, context: ended.context }, ended };
  }
  if (ended) return { item: ended, ended };
  if (situation.isCut && !isStopped(record)) return { item: { kind: 'deferred' }, ended: null };
  const plan =
    situation.delivered > 0 || (!situation.stopping && needsPlan(record, situation.calling, situation.fence, nowMs));
  return plan ? { item: { kind: 'plan' }, ended: null } : null;
}

/**
 * A terminal receipt that is stored and whose operation is still open; absences come by the inbox. An escalated
 * operation has met its own already; one that the run is stopped for waits for a release.
 */
function storedReceipt(record: RunRecord, receipts: Readonly<Record<string, Receipt>>): Receipt | null {
  for (const { operationId, status } of Object.values(record.operations)) {
    const receipt = receipts[operationId];
    if (receipt && status !== 'escalated' && !isKept(record, operationId)) return receipt;
  }
  return null;
}

/** The run is stopped because of this operation's receipt, which could not be reduced. */
function isKept(record: RunRecord, operationId: string): boolean {
  return isStopped(record) && record.escalation?.operationId === operationId;
}

/** The timer that is reduced next, if one is due; none is while the run is stopped. */
export function dueTimer(record: RunRecord, nowMs: number): Timer | null {
  if (isStopped(record)) return null;
  const timer = earliestTimer(record);
  return timer && timer.dueAtMs <= nowMs ? timer : null;
}

/** By due time; equal ones by id. */
export function earliestTimer(record: RunRecord): Timer | null {
  let first: Timer | null = null;
  for (const timer of Object.values(record.timers)) {
    const isEarlier =
      !first || timer.dueAtMs < first.dueAtMs || (timer.dueAtMs === first.dueAtMs && timer.id < first.id);
    if (isEarlier) first = timer;
  }
  return first;
}

/** Whether an operation or a blocked invocation is to be planned now. */
function needsPlan(record: RunRecord, calling: ReadonlySet<string>, fence: number, nowMs: number): boolean {
  return (
    record.blocked.some((waiting) => !isInTheWay(record, waiting)) ||
    Object.values(record.operations).some(
      (operation) =>
        !calling.has(operation.operationId) &&
        (isOrphaned(record, operation, fence) || isPerformable(record, operation, nowMs)),
    )
  );
}

/** Written by a worker that went away. */
function isOrphaned(record: RunRecord, operation: Operation, fence: number): boolean {
  if (operation.status !== 'attempted' || isKept(record, operation.operationId)) return false;
  return (operation.attempts.at(-1)?.fence ?? -1) < fence;
}

function isPerformable(record: RunRecord, operation: Operation, nowMs: number): boolean {
  const asks = operation.status === 'unknown' && operation.recovery === 'reconcile';
  return !asks && operation.status !== 'attempted' && (movableAtMs(record, operation) ?? Infinity) <= nowMs;
}

/**
 * Store time from which a worker can move an operation by itself; null when it waits for a person. While the run is
 * stopped nothing new is attempted, but what may have happened is asked about.
 */
export function movableAtMs(record: RunRecord, operation: Operation): number | null {
  if (isKept(record, operation.operationId)) return null;
  switch (operation.status) {
    case 'attempted':
      return 0;
    case 'intended':
    case 'not_executed':
    case 'blocked':
      return isStopped(record) ? null : operation.notBeforeMs;
    case 'unknown':
      return isStopped(record) && operation.recovery === 'repeat' ? null : operation.notBeforeMs;
    default:
      return null;
  }
}

/** Operations whose provider is to be asked now. */
export function toReconcile(
  record: RunRecord,
  receipts: Readonly<Record<string, Receipt>>,
  calling: ReadonlySet<string>,
  nowMs: number,
): Operation[] {
  return Object.values(record.operations).filter(
    (operation) =>
      operation.status === 'unknown' &&
      operation.recovery === 'reconcile' &&
      operation.notBeforeMs <= nowMs &&
      !calling.has(operation.operationId) &&
      !receipts[operation.operationId],
  );
}

/** Whether deferred events should be looked at again: a worker may have died between two commits. */
export function mayTakeDeferred({ deferred, allowed }: RunRecord): boolean {
  return deferred.some(({ body }) => body.kind === 'event' && allowed.includes(body.event.type));
}

/** Whether a run with an empty inbox and no call under way still has something to do now. */
export function hasWorkNow(
  record: RunRecord,
  receipts: Readonly<Record<string, Receipt>>,
  fence: number,
  nowMs: number,
): boolean {
  if (record.finishedAtMs !== null) return false;
  const calling: ReadonlySet<string> = new Set();
  return (
    needsPlan(record, calling, fence, nowMs) ||
    dueTimer(record, nowMs) !== null ||
    toReconcile(record, receipts, calling, nowMs).length > 0 ||
    storedReceipt(record, receipts) !== null
  );
}

/** Store time at which a timer, or an operation without a call under way, needs the worker; Infinity when none does. */
export function nextWakeMs(record: RunRecord, calling: ReadonlySet<string>, stopping: boolean): number {
  let next = Infinity;
  if (!isStopped(record)) for (const timer of Object.values(record.timers)) next = Math.min(next, timer.dueAtMs);
  if (stopping) return next;
  for (const operation of Object.values(record.operations)) {
    if (!calling.has(operation.operationId)) next = Math.min(next, movableAtMs(record, operation) ?? Infinity);
  }
  return next;
}
