/** The ledger entries and inbox items that a store writes on its own, when something comes in beside a commit. */
import type { IncomingEvent, InboxBody, Json, NewEntry, Receipt, StoredVerdict } from '../records.ts';

export function acceptedEntry(event: IncomingEvent, position: number, sequence: number, atMs: number): NewEntry {
  return {
    sequence,
    kind: 'accepted',
    atMs,
    eventId: event.eventId,
    ...describeBody(event.body),
    by: event.by,
    position,
  };
}

export function refusedEntry(event: IncomingEvent, verdict: StoredVerdict, atMs: number): NewEntry {
  return {
    sequence: verdict.sequence,
    kind: 'refused',
    atMs,
    eventId: event.eventId,
    ...describeBody(event.body),
    reason: verdict.reason,
    by: event.by,
  };
}

export function receivedEntry(receipt: Receipt, sequence: number, atMs: number): NewEntry {
  const { operationId, attempt, outcome, via } = receipt;
  return { sequence, kind: 'received', atMs, operationId, attempt, outcome, via, receipt };
}

/** What was found when a worker could not read a run's record. */
export function unreadableEntry(reason: string, sequence: number, atMs: number): NewEntry {
  return { sequence, kind: 'escalated', atMs, reason: 'record_unreadable', message: reason };
}

/** The inbox item that makes a run due when a receipt arrives beside a commit; the same for each arrival. */
export function receiptEvent(receipt: Receipt): IncomingEvent {
  return {
    eventId: `receipt:${receipt.operationId}:${receipt.attempt}:${receipt.outcome}`,
    by: receipt.by ?? null,
    body: { kind: 'receipt', receipt },
  };
}

function describeBody(body: InboxBody): { [field: string]: Json } {
  return body.kind === 'event' ? { type: body.event.type } : { body: body.kind };
}
