/** What arrives beside commits: events and receipts, each stored once. Inside a transaction that the caller opened. */
import type { IncomingEvent, InboxEvent, Receipt, StoredVerdict } from '../../records.ts';
import { acceptedEntry, receiptEvent, receivedEntry, refusedEntry } from '../door-entries.ts';
import { checkInboxRoom } from '../store-checks.ts';
import { inboxEventOf, verdictOf } from '../stored-text.ts';
import { LIMITS, type AcceptResult } from '../store.ts';
import { textOf, textOrNull, type Database } from './database.ts';
import { appendRow, prepareRow } from './ledger-rows.ts';
import { OperationRows } from './operation-rows.ts';
import { findRun, saveRun, type RunRow } from './run-rows.ts';

/** Items after `position`, in order, at most as many as a claim returns. */
export function inboxAfter(database: Database, run: RunRow, position: number): InboxEvent[] {
  if (run.lastPosition <= position) return [];
  const rows = database.all('SELECT item FROM {inbox} WHERE run = ? AND position > ? ORDER BY position LIMIT ?', [
    run.run,
    position,
    LIMITS.claimInboxItems,
  ]);
  return rows.map(([item]) => inboxEventOf(textOf(item)));
}

/** Undefined: the event id was never seen. Null: no verdict yet. */
export function findVerdict(database: Database, run: RunRow, eventId: string): StoredVerdict | null | undefined {
  const row = database.get('SELECT verdict FROM {events} WHERE run = ? AND event_id = ?', [run.run, eventId]);
  if (!row) return undefined;
  const text = textOrNull(row[0]);
  return text === null ? null : verdictOf(text);
}

export function acceptEvent(
  database: Database,
  runId: string,
  event: IncomingEvent,
  refused: { reason: string; state: StoredVerdict['state'] } | undefined,
  nowMs: number,
): AcceptResult {
  const run = findRun(database, runId);
  if (!run) return { kind: 'missing' };
  const known = findVerdict(database, run, event.eventId);
  if (known !== undefined) return { kind: 'duplicate', verdict: known };
  if (refused || run.isClosed) return refuseEvent(database, run, event, refused, nowMs);
  checkInboxRoom(runId, event.eventId, run.lastPosition - run.position);
  const after = enqueue(database, run, event, nowMs);
  const entry = acceptedEntry(event, after.lastPosition, run.sequence, nowMs);
  const prepared = prepareRow(run, nowMs, [entry], [], run.sequence);
  if (prepared) Object.assign(after, appendRow(database, run, prepared).changes);
  saveRun(database, run, after);
  return { kind: 'accepted', position: after.lastPosition };
}

function refuseEvent(
  database: Database,
  run: RunRow,
  event: IncomingEvent,
  refused: { reason: string; state: StoredVerdict['state'] } | undefined,
  nowMs: number,
): AcceptResult {
  const { reason, state } = refused ?? { reason: 'run_final', state: null };
  const verdict: StoredVerdict = { verdict: 'refused', sequence: run.sequence, state, reason };
  const text = JSON.stringify(verdict);
  const prepared = prepareRow(run, nowMs, [refusedEntry(event, verdict, nowMs)], [], run.sequence);
  database.run('INSERT INTO {events} VALUES (?, ?, ?)', [run.run, event.eventId, text]);
  if (prepared) saveRun(database, run, { ...run, ...appendRow(database, run, prepared).changes });
  return { kind: 'final', verdict: verdictOf(text) };
}

export function receiveReceipt(
  database: Database,
  runId: string,
  receipt: Receipt,
  nowMs: number,
): 'stored' | 'same' | 'conflict' | 'missing' {
  const run = findRun(database, runId);
  if (!run) return 'missing';
  if (receipt.outcome === 'unknown') return 'same';
  const operations = new OperationRows(database, run.run);
  const stored = operations.find(receipt.operationId);
  if (receipt.outcome === 'not_executed') {
    if (stored && operations.isAbsent(stored, receipt.attempt)) return 'same';
  } else if (stored?.terminal) {
    return stored.terminal.outcome === receipt.outcome ? 'same' : 'conflict';
  }
  const prepared = prepareRow(run, nowMs, [receivedEntry(receipt, run.sequence, nowMs)], [receipt], run.sequence);
  if (!prepared) throw new TypeError('a receipt always has an entry');
  const { row, changes } = appendRow(database, run, prepared);
  operations.addFact(receipt, { row, place: 0 });
  operations.save();
  const event = receiptEvent(receipt);
  const isNews = !run.isClosed && findVerdict(database, run, event.eventId) === undefined;
  const after = isNews ? enqueue(database, run, event, nowMs) : run;
  saveRun(database, run, { ...after, ...changes });
  return 'stored';
}

/** The run becomes due now unless it is leased (a lease that ended is due already); an unreadable one stays where it is. */
function enqueue(database: Database, run: RunRow, event: IncomingEvent, nowMs: number): RunRow {
  const position = run.lastPosition + 1;
  const item: InboxEvent = { ...event, position, atMs: nowMs };
  database.run('INSERT INTO {inbox} VALUES (?, ?, ?)', [run.run, position, JSON.stringify(item)]);
  database.run('INSERT INTO {events} VALUES (?, ?, NULL)', [run.run, event.eventId]);
  const wakes = !run.isMarked && run.lease === null;
  return { ...run, lastPosition: position, dueAtMs: wakes ? Math.min(run.dueAtMs ?? nowMs, nowMs) : run.dueAtMs };
}
