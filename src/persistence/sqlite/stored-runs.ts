/** A run as the port shows it, put together from its rows. One run that cannot be read never spoils another. */
import { messageOf } from '../../errors.ts';
import type { Receipt } from '../../records.ts';
import { rebuildRecord } from '../record-text.ts';
import { summaryOf } from '../stored-text.ts';
import type { DueRun, ListFilter, StoredRun } from '../store.ts';
import { numberOf, textOf, type Database } from './database.ts';
import type { SqlValue } from './driver.ts';
import { openReceipts } from './operation-rows.ts';
import { runByNumber, type RunRow } from './run-rows.ts';

/** The record that the stored texts stand for, or why they cannot be read. */
export function readRecord(database: Database, run: RunRow): ReturnType<typeof rebuildRecord> {
  const full = database.get('SELECT full_text FROM {records} WHERE run = ?', [run.run])?.[0];
  if (typeof full !== 'string') return { unreadable: 'its text is missing' };
  if (run.patchCount === 0) return rebuildRecord(full, [], run.recordDigest);
  const rows = database.all('SELECT patch FROM {patches} WHERE run = ? ORDER BY number', [run.run]);
  return rebuildRecord(
    full,
    rows.map(([patch]) => textOf(patch)),
    run.recordDigest,
  );
}

export function storedRun(database: Database, run: RunRow, nowMs: number): StoredRun {
  const rebuilt = readRecord(database, run);
  const receipts = readReceipts(database, run);
  const unreadable =
    'unreadable' in rebuilt ? rebuilt.unreadable : 'unreadable' in receipts ? receipts.unreadable : null;
  const summary = database.get('SELECT summary FROM {runs} WHERE run = ?', [run.run]);
  return {
    runId: run.runId,
    record: 'record' in rebuilt && unreadable === null ? rebuilt.record : null,
    unreadable,
    facts: {
      sequence: run.sequence,
      fence: run.fence,
      lease: run.lease,
      commitId: run.commitId,
      position: run.position,
      closed: run.isClosed,
      receipts: 'receipts' in receipts ? receipts.receipts : {},
    },
    summary: summaryOf(textOf(summary?.[0])),
    recordDigest: run.recordDigest,
    waiting: run.lastPosition - run.position,
    nowMs,
  };
}

function readReceipts(database: Database, run: RunRow): { receipts: Record<string, Receipt> } | { unreadable: string } {
  try {
    return { receipts: openReceipts(database, run.run) };
  } catch (error) {
    return { unreadable: `a receipt of an open operation cannot be read: ${messageOf(error)}` };
  }
}

/** One page, newest first. */
export function listRuns(
  database: Database,
  filter: ListFilter,
  page: { limit: number; before: number },
  nowMs: number,
): { runs: StoredRun[]; cursor: string | null } {
  const conditions = ['run < ?'];
  const values: SqlValue[] = [page.before];
  const where = (condition: string, ...bound: SqlValue[]): void => {
    conditions.push(condition);
    values.push(...bound);
  };
  if (filter.agent !== undefined) where('agent = ?', filter.agent);
  if (filter.status !== undefined) where('status = ?', filter.status);
  if (filter.tenant !== undefined) where('tenant = ?', filter.tenant);
  if (filter.state !== undefined) {
    where(`EXISTS (SELECT 1 FROM json_each(summary, '$.states') WHERE value = ?)`, filter.state);
  }
  for (const [name, value] of Object.entries(filter.labels ?? {})) {
    where(`EXISTS (SELECT 1 FROM json_each(summary, '$.labels') WHERE key = ? AND value = ?)`, name, value);
  }
  if (filter.blocked !== undefined) where(filter.blocked ? IS_BLOCKED : `NOT ${IS_BLOCKED}`);
  const sql = `SELECT run FROM {runs} WHERE ${conditions.join(' AND ')} ORDER BY run DESC LIMIT ?`;
  const rows = database.all(sql, [...values, page.limit + 1]);
  const numbers = rows.slice(0, page.limit).map(([run]) => numberOf(run));
  const runs = numbers.flatMap((number) => runByNumber(database, number) ?? []);
  return {
    runs: runs.map((run) => storedRun(database, run, nowMs)),
    cursor: rows.length > page.limit ? String(numbers.at(-1)) : null,
  };
}

const IS_BLOCKED = `(status = 'needs_human'
  OR EXISTS (SELECT 1 FROM json_each(summary, '$.waitingFor') WHERE substr(value, 1, 7) = 'blocked'))`;

/** The earliest due times. A leased run is due at its lease end, which its indexed time may lag behind. */
export function dueRuns(database: Database, limit: number): DueRun[] {
  const rows = database.all(
    `SELECT run_id, agent, agent_version, max(due_at, coalesce(lease_until, due_at)) AS due FROM {runs}
     WHERE due_at IS NOT NULL ORDER BY due, run LIMIT ?`,
    [limit],
  );
  return rows.map(([runId, agent, version, dueAtMs]) => ({
    runId: textOf(runId),
    agent: textOf(agent),
    agentVersion: numberOf(version),
    dueAtMs: numberOf(dueAtMs),
  }));
}

/** Ids of free runs that are due now: what another process may have made due. */
export function wakeableRuns(database: Database, nowMs: number, limit: number): string[] {
  const rows = database.all(
    `SELECT run_id FROM {runs} WHERE due_at <= ? AND (lease_until IS NULL OR lease_until <= ?) ORDER BY due_at LIMIT ?`,
    [nowMs, nowMs, limit],
  );
  return rows.map(([runId]) => textOf(runId));
}
