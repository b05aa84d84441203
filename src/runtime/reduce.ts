/** Reduces one item into a draft: an event, a timer, a receipt; then what follows from it, until nothing does. */
import { classify } from '../machines/classify.ts';
import type { InboxEvent, Json, JsonObject, Receipt, Timer } from '../records.ts';
import { LIMITS } from '../persistence/store.ts';
import { dueTimer } from './choose.ts';
import { DEADLINE_TIMER, isStopped, MAX_MACROSTEPS, type Draft } from './draft.ts';
import { leaveMachine, reduceCompletion, reduceEvent, Runaway, stepFault } from './macrostep.ts';
import { giveUpLeft } from './operations.ts';
import { reportContradiction, takeReceipt, type ReceiptContext } from './receipts.ts';
import { takeReconciled, type Reconciled } from './reconcile-answer.ts';

export type Item =
  | { kind: 'inbox'; event: InboxEvent }
  | { kind: 'timer'; timer: Timer }
  | { kind: 'receipt'; receipt: Receipt; context: ReceiptContext }
  | { kind: 'reconciled'; reconciled: Reconciled }
  | { kind: 'contradicted'; receipt: Receipt; stored: Receipt }
  /** Deferred events that the last commit had no room for. */
  | { kind: 'deferred' }
  /** Nothing to reduce: operations are to be planned, or the lease given back. */
  | { kind: 'plan' };

/** Begins the ids of timers that hold an own event while the run is stopped. */
const OWN_EVENT = 'pawl.own.';

type OutsideEvent = JsonObject & { type: string };

export function reduceItem(draft: Draft, item: Item, random: number): void {
  switch (item.kind) {
    case 'inbox':
      draft.position = item.event.position;
      reduceInboxEvent(draft, item.event, random);
      break;
    case 'timer':
      reduceTimer(draft, item.timer);
      break;
    case 'receipt':
      takeReceipt(draft, item.receipt, item.context);
      break;
    case 'reconciled':
      takeReconciled(draft, item.reconciled, random);
      break;
    case 'contradicted':
      reportContradiction(draft, item.receipt, item.stored);
      break;
    case 'deferred':
      if (!reduceOneDeferred(draft)) return;
      // Refused: the others are still to be looked at.
      draft.isCut = draft.macrosteps === 0;
      break;
    case 'plan':
      break;
  }
  reduceFollowing(draft);
}

export function reduceInboxEvent(draft: Draft, event: InboxEvent, random: number): void {
  const { body } = event;
  if (body.kind === 'receipt') {
    takeReceipt(draft, body.receipt, { random, stored: true });
    return draft.verdict(event, 'applied');
  }
  if (draft.record.finishedAtMs !== null) return refuse(draft, event, 'run_final');
  switch (body.kind) {
    case 'event':
      if (isStopped(draft.record)) return hold(draft, event);
      return reduceOutsideEvent(draft, event, body.event);
    case 'cancel':
      return reduceCancel(draft, event, body.reason);
    case 'release':
      return reduceRelease(draft, event, body.reason);
    default:
      // Votes and child messages have no receiver yet.
      return refuse(draft, event, 'unknown_event');
  }
}

/** While reducing is stopped, events are kept in order; those beyond the limit are refused. */
function hold(draft: Draft, event: InboxEvent): void {
  if (draft.record.deferred.length >= LIMITS.deferredItems) return refuse(draft, event, 'deferred_full');
  draft.list('deferred').push(event);
  draft.entry('deferred', { eventId: event.eventId, reason: 'stopped' }, { eventId: event.eventId });
}

function reduceOutsideEvent(draft: Draft, inbox: InboxEvent, event: OutsideEvent): void {
  if (draft.record.cancel !== null || draft.record.machine.status !== 'active')
    return refuse(draft, inbox, 'run_final');
  if (inbox.expectedSequence !== undefined && inbox.expectedSequence !== draft.sequence) {
    return refuse(draft, inbox, 'stale_sequence');
  }
  try {
    if (reduceEvent(draft, event, { eventId: inbox.eventId })) return draft.verdict(inbox, 'applied');
    rejectByPolicy(draft, inbox, event);
  } catch (error) {
    if (!(error instanceof Runaway)) return refuse(draft, inbox, 'step_threw', stepFault(error).message);
    // One of many that were held back: it waits for the next release.
    stop(draft, error, {});
    hold(draft, inbox);
  }
}

/** The chart does not take the event now: reject, defer or drop, as the event says. */
function rejectByPolicy(draft: Draft, inbox: InboxEvent, event: OutsideEvent): void {
  const policy = draft.base.agent.definition.events.policyOf(event.type);
  if (policy === 'defer' && draft.record.deferred.length < LIMITS.deferredItems) {
    draft.list('deferred').push(inbox);
    draft.entry('deferred', { eventId: inbox.eventId, type: event.type }, { eventId: inbox.eventId });
    return draft.verdict(inbox, 'deferred');
  }
  if (policy === 'drop') {
    draft.entry('dropped', { eventId: inbox.eventId, type: event.type }, { eventId: inbox.eventId });
    return draft.verdict(inbox, 'dropped');
  }
  if (policy === 'defer') return refuse(draft, inbox, 'deferred_full');
  const at = { runId: draft.record.runId, sequence: draft.sequence + 1, atMs: draft.nowMs };
  const guarded = classify(draft.base.agent.definition.durable, draft.snapshot, event, at) === 'guard_rejected';
  refuse(draft, inbox, guarded ? 'guard_rejected' : 'forbidden');
}

export function refuse(draft: Draft, event: InboxEvent, reason: string, message?: string): void {
  const type = event.body.kind === 'event' ? event.body.event.type : event.body.kind;
  const fields = { eventId: event.eventId, type, reason, by: event.by, allowed: draft.record.allowed };
  draft.entry('refused', message === undefined ? fields : { ...fields, message }, { eventId: event.eventId });
  draft.verdict(event, 'refused', reason);
}

function reduceCancel(draft: Draft, event: InboxEvent, reason: string): void {
  if (draft.record.cancel !== null || draft.record.machine.status !== 'active')
    return refuse(draft, event, 'run_final');
  cancelRun(draft, event.by ?? 'unknown', reason);
  draft.verdict(event, 'applied');
}

/** From here on the machine takes nothing; what is in flight is settled, then the run is `cancelled`. */
export function cancelRun(draft: Draft, by: string, reason: string): void {
  draft.record.cancel = { by, reason, atMs: draft.nowMs };
  draft.entry('cancel_requested', { by, reason });
  // Nothing undoes them yet; whoever cancels must be able to see what stands.
  for (const { operationId } of draft.record.standing)
    draft.entry('escalated', { reason: 'not_compensated', operationId });
  leaveMachine(draft);
  if (isStopped(draft.record)) draft.record.escalation = null;
  if (draft.record.pending.length > 0) draft.record.pending = [];
}

function reduceRelease(draft: Draft, event: InboxEvent, reason: string): void {
  const { escalation } = draft.record;
  const escalated = Object.values(draft.record.operations).filter((operation) => operation.status === 'escalated');
  if (escalation === null && escalated.length === 0) return refuse(draft, event, 'not_stopped');
  draft.record.escalation = null;
  draft.entry('released', { by: event.by, reason }, { eventId: event.eventId });
  for (const operation of escalated) {
    if (operation.recovery === 'human' || operation.evidence !== undefined) {
      // Only `resolve` can say what happened.
      draft.record.escalation = { reason: 'unknown_outcome', operationId: operation.operationId, atMs: draft.nowMs };
      continue;
    }
    draft.moveOperation(operation.operationId, 'release', {
      reconciles: 0,
      crashes: 0,
      unknownSinceMs: draft.nowMs,
      notBeforeMs: 0,
    });
  }
  reduceHeldBack(draft);
  draft.verdict(event, 'applied');
}

/** What came while the run was stopped, in its order: completions and own events, then timers and events by time. */
function reduceHeldBack(draft: Draft): void {
  const { pending, deferred } = draft.record;
  draft.record.pending = [];
  draft.record.deferred = [];
  for (const completion of pending) draft.complete(completion);
  for (const timer of Object.values(draft.record.timers)) {
    if (!timer.id.startsWith(OWN_EVENT)) continue;
    delete draft.map('timers')[timer.id];
    draft.follow.push({ kind: 'event', event: timer.event });
  }
  reduceFollowing(draft);
  for (const kept of deferred) {
    for (let timer = dueTimer(draft.record, kept.atMs); timer; timer = dueTimer(draft.record, kept.atMs)) {
      reduceTimer(draft, timer);
      reduceFollowing(draft);
    }
    reduceInboxEvent(draft, kept, 0);
    reduceFollowing(draft);
  }
}

/** An own event that cannot be reduced now is kept as a timer that is due at once. */
function keepOwnEvent(draft: Draft, event: Json): void {
  const id = `${OWN_EVENT}${draft.sequence}.${Object.keys(draft.record.timers).length}`;
  draft.map('timers')[id] = { id, kind: 'send', dueAtMs: draft.nowMs, event, armedAt: draft.sequence };
  draft.entry('timer_armed', { timerId: id, dueAtMs: draft.nowMs });
}

function reduceTimer(draft: Draft, timer: Timer): void {
  const current = draft.record.timers[timer.id];
  if (!current || current.armedAt !== timer.armedAt) return;
  delete draft.map('timers')[timer.id];
  draft.entry('timer_fired', { timerId: timer.id, dueAtMs: timer.dueAtMs }, { timerId: timer.id });
  try {
    if (timer.kind === 'deadline') return reduceDeadline(draft);
    reduceEvent(draft, timer.event as OutsideEvent, { timerId: timer.id });
  } catch (error) {
    draft.map('timers')[timer.id] = timer;
    stop(draft, error, {});
  }
}

function reduceDeadline(draft: Draft): void {
  const declared = draft.base.agent.definition.events.has('DEADLINE_EXCEEDED');
  if (declared && reduceEvent(draft, { type: 'DEADLINE_EXCEEDED' }, { timerId: DEADLINE_TIMER })) return;
  cancelRun(draft, 'pawl', 'deadline');
}

/** Completions and own events of this commit, then deferred events that became legal, oldest first. */
export function reduceFollowing(draft: Draft): void {
  reduceQueued(draft);
  giveUpLeft(draft);
}

function reduceQueued(draft: Draft): void {
  for (;;) {
    while (draft.follow.length > 0) {
      const next = draft.follow[0];
      if (!next) break;
      if (isStopped(draft.record)) {
        if (next.kind === 'completion') draft.list('pending').push(next.completion);
        else keepOwnEvent(draft, next.event);
        draft.follow.shift();
        continue;
      }
      try {
        if (next.kind === 'completion') reduceCompletion(draft, next.completion);
        else if (!reduceEvent(draft, next.event as OutsideEvent)) draft.entry('dropped', { event: next.event });
        draft.follow.shift();
      } catch (error) {
        stop(draft, error, next.kind === 'completion' ? { invocationId: next.completion.invocationId } : {});
      }
    }
    if (isStopped(draft.record) || draft.macrosteps === 0 || !reduceOneDeferred(draft)) return;
  }
}

/** The oldest deferred event that the chart takes now. Those beyond one commit are left to the next. */
function reduceOneDeferred(draft: Draft): boolean {
  if (draft.record.cancel !== null || draft.record.machine.status !== 'active') return false;
  if (draft.macrosteps >= MAX_MACROSTEPS) {
    draft.isCut = draft.record.deferred.length > 0;
    return false;
  }
  for (const [index, kept] of draft.record.deferred.entries()) {
    if (kept.body.kind !== 'event') continue;
    try {
      if (!reduceEvent(draft, kept.body.event, { eventId: kept.eventId })) continue;
      draft.verdict(kept, 'applied');
    } catch (error) {
      refuse(draft, kept, 'step_threw', stepFault(error).message);
    }
    draft.list('deferred').splice(index, 1);
    return true;
  }
  return false;
}

function stop(draft: Draft, error: unknown, fields: { invocationId?: string }): void {
  if (error instanceof Runaway) {
    draft.escalate('runaway', { ...fields, message: 'More than 100 macrosteps would follow from one item.' });
    return;
  }
  draft.escalate('step_threw', { ...fields, message: stepFault(error).message });
}
