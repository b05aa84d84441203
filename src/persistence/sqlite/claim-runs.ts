/** Taking due runs: cost follows the number of runs taken, not the number stored or the length of their histories. */
import type { Claim, Store } from '../store.ts';
import { numberOf, type Database } from './database.ts';
import { inboxAfter } from './inbox-rows.ts';
import { findRun, isLeased, leased, runByNumber, saveRun, type RunRow } from './run-rows.ts';
import { readRecord, storedRun } from './stored-runs.ts';

export type ClaimRequest = Parameters<Store['claim']>[0];

/** Whether a claim would find anything; spares an idle worker the transaction. */
export function isAnythingDue(database: Database, nowMs: number): boolean {
  return database.get('SELECT 1 FROM {runs} WHERE due_at <= ? LIMIT 1', [nowMs]) !== undefined;
}

/** Inside a transaction that the caller opened: raises the fence and takes the lease of each run it returns. */
export function claimRuns(database: Database, request: ClaimRequest, nowMs: number): Claim[] {
  const candidates = request.runIds
    ? namedRuns(database, request, request.runIds, nowMs)
    : dueNow(database, request, nowMs);
  return candidates.slice(0, request.limit).map((run) => takeRun(database, run, request, nowMs));
}

function dueNow(database: Database, request: ClaimRequest, nowMs: number): RunRow[] {
  const found: { run: number; dueAtMs: number }[] = [];
  for (const [agent, versions] of Object.entries(request.agents)) {
    for (const version of versions) {
      const values = [agent, version, nowMs];
      // Runs whose lease was renewed are still indexed under an earlier time: each is mended once per lease.
      database.run(
        `UPDATE {runs} SET due_at = lease_until WHERE agent = ? AND agent_version = ? AND due_at <= ? AND lease_until > due_at`,
        values,
      );
      const rows = database.all(
        `SELECT run, due_at FROM {runs} WHERE agent = ? AND agent_version = ? AND due_at <= ? ORDER BY due_at, run LIMIT ?`,
        [...values, request.limit],
      );
      for (const [run, dueAtMs] of rows) found.push({ run: numberOf(run), dueAtMs: numberOf(dueAtMs) });
    }
  }
  found.sort((a, b) => a.dueAtMs - b.dueAtMs || a.run - b.run);
  return found.slice(0, request.limit).flatMap(({ run }) => runByNumber(database, run) ?? []);
}

/** Of the runs named, those that are free, not closed and of these agents; due or not. */
function namedRuns(database: Database, request: ClaimRequest, runIds: string[], nowMs: number): RunRow[] {
  const runs = [...new Set(runIds)].flatMap((runId) => findRun(database, runId) ?? []);
  const free = runs.filter((run) => {
    if (run.isClosed || isLeased(run, nowMs)) return false;
    if (!Object.hasOwn(request.agents, run.agent) || !request.agents[run.agent]?.includes(run.agentVersion))
      return false;
    return !run.isMarked || 'record' in readRecord(database, run);
  });
  return free.toSorted((a, b) => Math.sign(dueAt(a) - dueAt(b)) || a.run - b.run);
}

function dueAt(run: RunRow): number {
  return run.lease?.untilMs ?? run.dueAtMs ?? Infinity;
}

function takeRun(database: Database, run: RunRow, { workerId, leaseMs }: ClaimRequest, nowMs: number): Claim {
  const untilMs = nowMs + leaseMs;
  const taken: RunRow = {
    ...run,
    fence: run.fence + 1,
    isMarked: false,
    ...leased({ ...run, lease: null }, workerId, untilMs),
  };
  saveRun(database, run, taken);
  const lease = { runId: run.runId, workerId, fence: taken.fence, untilMs };
  return { ...storedRun(database, taken, nowMs), lease, inbox: inboxAfter(database, taken, taken.position) };
}
