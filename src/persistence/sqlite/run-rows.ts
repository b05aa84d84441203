/** The row of a run: what a commit checks and changes, and what `StoredRun` is made of. */
import type { RunSummary } from '../../records.ts';
import { numberOf, numberOrNull, textOf, textOrNull, type Database } from './database.ts';
import type { SqlRow } from './driver.ts';

export interface RunRow {
  run: number;
  runId: string;
  agent: string;
  agentVersion: number;
  status: string;
  /** While leased: at most the lease end, see `dueOf`. Null: never due. */
  dueAtMs: number | null;
  fence: number;
  lease: { workerId: string; untilMs: number } | null;
  sequence: number;
  position: number;
  lastPosition: number;
  isClosed: boolean;
  isMarked: boolean;
  commitId: string;
  recordDigest: string;
  patchCount: number;
  entryCount: number;
  ledgerDigest: string;
  receiptCount: number;
}

const COLUMNS = `run, run_id, agent, agent_version, status, due_at, fence, lease_until, worker, sequence, position,
  last_position, closed, unreadable, commit_id, record_digest, patch_count, entry_count, ledger_digest, receipt_count`;

export function findRun(database: Database, runId: string): RunRow | null {
  const row = database.get(`SELECT ${COLUMNS} FROM {runs} WHERE run_id = ?`, [runId]);
  return row ? runOf(row) : null;
}

export function runByNumber(database: Database, run: number): RunRow | null {
  const row = database.get(`SELECT ${COLUMNS} FROM {runs} WHERE run = ?`, [run]);
  return row ? runOf(row) : null;
}

function runOf(row: SqlRow): RunRow {
  const untilMs = numberOrNull(row[7]);
  return {
    run: numberOf(row[0]),
    runId: textOf(row[1]),
    agent: textOf(row[2]),
    agentVersion: numberOf(row[3]),
    status: textOf(row[4]),
    dueAtMs: numberOrNull(row[5]),
    fence: numberOf(row[6]),
    lease: untilMs === null ? null : { workerId: textOrNull(row[8]) ?? '', untilMs },
    sequence: numberOf(row[9]),
    position: numberOf(row[10]),
    lastPosition: numberOf(row[11]),
    isClosed: row[12] === 1,
    isMarked: row[13] === 1,
    commitId: textOf(row[14]),
    recordDigest: textOf(row[15]),
    patchCount: numberOf(row[16]),
    entryCount: numberOf(row[17]),
    ledgerDigest: textOf(row[18]),
    receiptCount: numberOf(row[19]),
  };
}

export function isLeased(run: RunRow, nowMs: number): boolean {
  return run.lease !== null && run.lease.untilMs > nowMs;
}

/** Null unless the run exists, is leased (expired or not) and the fence is the current one. */
export function findLeased(database: Database, runId: string, fence: number): LeasedRun | null {
  const run = findRun(database, runId);
  return run?.lease && run.fence === fence ? { ...run, lease: run.lease } : null;
}

export type LeasedRun = RunRow & { lease: NonNullable<RunRow['lease']> };

/** Takes the next free number; the row is then completed by `saveRun`. */
export function insertRun(database: Database, runId: string, summary: RunSummary): RunRow {
  const { agent, agentVersion, tenant, status } = summary;
  database.run(
    `INSERT INTO {runs} (run_id, agent, agent_version, tenant, status, fence, sequence, position, last_position, closed,
       unreadable, commit_id, record_digest, patch_count, entry_count, ledger_digest, receipt_count, summary)
     VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, '', '', 0, 0, '', 0, '')`,
    [runId, agent, agentVersion, tenant, status],
  );
  const run = findRun(database, runId);
  if (!run) throw new TypeError(`run ${runId} was not inserted`);
  return run;
}

/**
 * Writes the changed row, with a new summary if there is one. Indexed columns are written only when they changed: SQLite
 * rewrites an index entry whenever its column is named, and a step of a leased run should touch none.
 */
export function saveRun(database: Database, before: RunRow, after: RunRow, summary?: RunSummary): void {
  const values = [
    after.fence,
    after.lease?.untilMs ?? null,
    after.lease?.workerId ?? null,
    after.sequence,
    after.position,
    after.lastPosition,
    after.isClosed ? 1 : 0,
    after.isMarked ? 1 : 0,
    after.commitId,
    after.recordDigest,
    after.patchCount,
    after.entryCount,
    after.ledgerDigest,
    after.receiptCount,
  ];
  if (summary) database.run(`${SAVE}, summary = ? WHERE run = ?`, [...values, JSON.stringify(summary), after.run]);
  else database.run(`${SAVE} WHERE run = ?`, [...values, after.run]);
  if (after.dueAtMs !== before.dueAtMs) {
    database.run('UPDATE {runs} SET due_at = ? WHERE run = ?', [after.dueAtMs, after.run]);
  }
  if (!summary) return;
  if (summary.status !== before.status) {
    database.run('UPDATE {runs} SET status = ? WHERE run = ?', [summary.status, after.run]);
  }
  if (summary.agentVersion !== before.agentVersion || summary.agent !== before.agent) {
    const agent = [summary.agent, summary.agentVersion, after.run];
    database.run('UPDATE {runs} SET agent = ?, agent_version = ? WHERE run = ?', agent);
  }
}

const SAVE = `UPDATE {runs} SET fence = ?, lease_until = ?, worker = ?, sequence = ?, position = ?, last_position = ?,
  closed = ?, unreadable = ?, commit_id = ?, record_digest = ?, patch_count = ?, entry_count = ?, ledger_digest = ?,
  receipt_count = ?`;

/**
 * The changes that lease a run until `untilMs`. The due time is left behind when it is earlier already: renewing then
 * touches no index, and `claim` mends the few it meets.
 */
export function leased(run: RunRow, workerId: string, untilMs: number): Pick<RunRow, 'lease' | 'dueAtMs'> {
  const lags = run.dueAtMs !== null && run.dueAtMs <= untilMs && run.lease !== null;
  return { lease: { workerId, untilMs }, dueAtMs: run.isClosed ? null : lags ? run.dueAtMs : untilMs };
}

/** The changes that free a run: due now when its inbox holds more, never again once it is closed. */
export function freed(run: RunRow, dueAtMs: number | null, nowMs: number): Pick<RunRow, 'lease' | 'dueAtMs'> {
  if (run.isClosed) return { lease: null, dueAtMs: null };
  const wake = run.lastPosition > run.position;
  return { lease: null, dueAtMs: wake ? Math.min(dueAtMs ?? nowMs, nowMs) : dueAtMs };
}
