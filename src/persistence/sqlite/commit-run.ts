/** The atomic write of a commit, inside a transaction that the caller opened: all checks first, then all writes. */
import type { Commit, CommitResult, OperationKey, Receipt } from '../../records.ts';
import { digestAfter } from '../record-text.ts';
import { checkEntrySizes, checkPosition } from '../store-checks.ts';
import type { Database } from './database.ts';
import { inboxAfter } from './inbox-rows.ts';
import { appendRow, prepareRow } from './ledger-rows.ts';
import { OperationRows } from './operation-rows.ts';
import { findRun, freed, insertRun, leased, saveRun, type RunRow } from './run-rows.ts';

export function commitRun(
  database: Database,
  commit: Commit,
  nowMs: number,
  isDurable: (commit: Commit) => boolean,
): CommitResult {
  const run = findRun(database, commit.runId);
  if (!run) return { kind: 'missing' };
  if (run.fence !== commit.fence) return { kind: 'stale_fence' };
  const done = (kind: 'ok' | 'repeated', after: RunRow): CommitResult => ({
    kind,
    inbox: inboxAfter(database, after, after.position),
    nowMs,
    leaseUntilMs: after.lease?.untilMs ?? null,
    durable: isDurable(commit),
    closed: after.isClosed,
  });
  if (run.commitId === commit.commitId) return done('repeated', run);
  // The lease was given back: a new commit under its fence is as late as one under an older fence.
  if (!run.lease) return { kind: 'stale_fence' };
  if (run.commitId !== commit.after) return { kind: 'stale_sequence' };
  if (run.sequence !== commit.expectedSequence) return { kind: 'stale_sequence' };
  if (run.position !== commit.expectedPosition) return { kind: 'stale_sequence' };
  if ('patch' in commit.record && commit.record.baseDigest !== run.recordDigest) return { kind: 'stale_sequence' };
  const operations = new OperationRows(database, run.run);
  const conflict = findConflict(commit, operations);
  if (conflict) {
    const { on, operationId, storedId } = conflict;
    const stored = operations.stored(operations.open(storedId));
    return { kind: 'conflict', on, operationId, stored, inbox: inboxAfter(database, run, run.position), nowMs };
  }
  return done('ok', write(database, run, commit, operations, nowMs));
}

/** The first commit of a run that does not exist yet. */
export function createRun(database: Database, commit: Commit, nowMs: number): void {
  // What `write` refuses it must refuse before the row is inserted.
  checkEntrySizes(commit.runId, commit.entries, Number.MAX_SAFE_INTEGER);
  checkPosition(commit, 0);
  const run = insertRun(database, commit.runId, commit.summary);
  write(database, run, commit, new OperationRows(database, run.run), nowMs);
}

interface Conflict {
  on: 'key' | 'receipt' | 'attempt';
  operationId: string;
  storedId: string;
}

/** The first stored fact that the commit contradicts: keys, then receipts, then attempts. */
function findConflict(commit: Commit, operations: OperationRows): Conflict | null {
  for (const key of commit.keys) {
    if (operations.areNew(key.keyDigest, key.operationId)) continue;
    const stored = operations.findByKey(key.keyDigest);
    if (stored && !yields(stored, key)) {
      return { on: 'key', operationId: key.operationId, storedId: stored.operationId };
    }
  }
  for (const { operationId, outcome } of commit.receipts) {
    if (outcome !== 'succeeded' && outcome !== 'failed') continue;
    const stored = operations.find(operationId)?.terminal;
    if (stored && stored.outcome !== outcome) return { on: 'receipt', operationId, storedId: operationId };
  }
  for (const { operationId } of commit.attempts) {
    if (operations.find(operationId)?.terminal) return { on: 'attempt', operationId, storedId: operationId };
  }
  return null;
}

/** A key goes to a later generation, or again to its own operation when that closed without having happened. */
function yields(stored: NonNullable<ReturnType<OperationRows['find']>>, key: OperationKey): boolean {
  const generation = stored.key?.generation ?? 0;
  if (generation < key.generation) return true;
  if (generation > key.generation || stored.operationId !== key.operationId) return false;
  if (key.attempts !== undefined && key.attempts !== stored.closed?.attempts) return false;
  const reopens = stored.closed?.status === 'not_executed' || stored.closed?.status === 'withdrawn';
  return reopens && stored.terminal?.outcome !== 'succeeded';
}

function write(database: Database, run: RunRow, commit: Commit, operations: OperationRows, nowMs: number): RunRow {
  const receipts = newReceipts(commit, operations);
  const { sequence, atMs } = commit.entries[0] ?? { sequence: commit.expectedSequence, atMs: nowMs };
  const prepared = prepareRow(run, atMs, commit.entries, receipts, sequence);
  checkPosition(commit, run.lastPosition);
  // Nothing is refused from here on.
  const after: RunRow = { ...run, sequence: commit.sequence, position: commit.position, commitId: commit.commitId };
  const appended = prepared && appendRow(database, run, prepared);
  if (appended) Object.assign(after, appended.changes);
  for (const key of commit.keys) operations.rekey(operations.open(key.operationId), key);
  for (const [place, receipt] of receipts.entries()) operations.addFact(receipt, { row: appended?.row ?? 0, place });
  for (const closed of commit.closes) operations.open(closed.operationId).closed = closed;
  operations.save();
  writeRecord(database, after, commit);
  for (const { eventId, verdict } of commit.verdicts) {
    database.run(
      'INSERT INTO {events} VALUES (?, ?, ?) ON CONFLICT (run, event_id) DO UPDATE SET verdict = excluded.verdict',
      [run.run, eventId, JSON.stringify(verdict)],
    );
  }
  if (commit.position > run.position) {
    database.run('DELETE FROM {inbox} WHERE run = ? AND position <= ?', [run.run, commit.position]);
  }
  after.isClosed ||= commit.close && after.lastPosition === after.position;
  Object.assign(after, nextLease(after, commit, nowMs));
  saveRun(database, run, after, commit.summary);
  return after;
}

function nextLease(run: RunRow, { lease }: Commit, nowMs: number): Pick<RunRow, 'lease' | 'dueAtMs'> {
  if ('keepMs' in lease && run.lease) return leased(run, run.lease.workerId, nowMs + lease.keepMs);
  return freed(run, 'keepMs' in lease ? nowMs : lease.releaseDueAtMs, nowMs);
}

/** The receipts of the commit that are not facts yet. The first stored output stands, also within one commit. */
function newReceipts(commit: Commit, operations: OperationRows): Receipt[] {
  const named = new Set<string>();
  return commit.receipts.filter((receipt) => {
    const { operationId, attempt, outcome } = receipt;
    if (outcome === 'unknown') return false;
    const name = outcome === 'not_executed' ? `${operationId}#${attempt}` : operationId;
    if (named.has(name)) return false;
    named.add(name);
    const row = operations.find(operationId);
    if (!row) return true;
    return outcome === 'not_executed' ? !operations.isAbsent(row, attempt) : row.terminal === null;
  });
}

function writeRecord(database: Database, run: RunRow, commit: Commit): void {
  const { record } = commit;
  run.recordDigest = digestAfter(record);
  if ('patch' in record) {
    database.run('INSERT INTO {patches} VALUES (?, ?, ?)', [run.run, run.patchCount, record.patch]);
    run.patchCount += 1;
    return;
  }
  database.run('INSERT INTO {records} VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET full_text = excluded.full_text', [
    run.run,
    record.full,
  ]);
  if (run.patchCount > 0) database.run('DELETE FROM {patches} WHERE run = ?', [run.run]);
  run.patchCount = 0;
}
