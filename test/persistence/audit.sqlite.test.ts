import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import type { Store } from '../../src/persistence/store.ts';
import { busyHistory, BUSY_RUNS } from './busy-run.ts';
import { movableClock } from './movable-clock.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
let store: Store;
let database: Database.Database;

beforeAll(async () => {
  const path = join(folder.path, 'pawl.db');
  store = sqliteStore({ path, clock: movableClock() });
  for await (const call of busyHistory(store, 6)) if (call.startsWith('release')) break;
  database = new Database(path);
  database.exec('PRAGMA synchronous = OFF');
});

afterAll(async () => {
  await store.close();
  database.close();
  folder.remove();
});

test('untouched, all digests hold', async () => {
  for (const runId of BUSY_RUNS) expect(await store.audit(runId)).toEqual([]);
});

/** Changes the bytes behind the store's back, looks, and puts them back. */
async function auditWith(sql: string): Promise<{ sequence: number; what: string }[]> {
  const tables = ['runs', 'records', 'patches', 'ledger', 'operations', 'absences'].map((name) => `pawl_${name}`);
  for (const table of tables) database.exec(`CREATE TEMP TABLE kept_${table} AS SELECT * FROM ${table}`);
  try {
    database.exec(sql);
    return await store.audit('run-b');
  } finally {
    for (const table of tables) {
      database.exec(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_${table}; DROP TABLE kept_${table}`);
    }
  }
}

const RUN = `(SELECT run FROM pawl_runs WHERE run_id = 'run-b')`;

test('a changed byte in any ledger row is found, with its sequence', async () => {
  const rows = database.prepare(`SELECT row, sequence, body FROM pawl_ledger WHERE run = ${RUN} ORDER BY first`).all();
  expect(rows.length).toBeGreaterThan(10);
  for (const { row, sequence, body } of rows as { row: number; sequence: number; body: string }[]) {
    for (const at of [2, Math.floor(body.length / 2), body.length - 3]) {
      const changed = body.slice(0, at) + (body[at] === '1' ? '2' : '1') + body.slice(at + 1);
      const problems = await auditWith(
        `UPDATE pawl_ledger SET body = '${changed.replaceAll("'", "''")}' WHERE row = ${row}`,
      );
      expect(problems[0]?.sequence).toBe(sequence);
    }
    for (const column of ['first', 'sequence', 'at', 'link']) {
      const problems = await auditWith(`UPDATE pawl_ledger SET ${column} = ${column} + 1 WHERE row = ${row}`);
      expect([column, problems.length]).not.toEqual([column, 0]);
    }
  }
});

const TAMPERING: Record<string, string> = {
  'the last ledger row removed': `DELETE FROM pawl_ledger WHERE row = (SELECT max(row) FROM pawl_ledger WHERE run = ${RUN})`,
  'the last two ledger rows removed': `DELETE FROM pawl_ledger WHERE row IN (SELECT row FROM pawl_ledger WHERE run = ${RUN} ORDER BY row DESC LIMIT 2)`,
  'the first ledger row removed': `DELETE FROM pawl_ledger WHERE row = (SELECT min(row) FROM pawl_ledger WHERE run = ${RUN})`,
  'all ledger rows removed': `DELETE FROM pawl_ledger WHERE run = ${RUN}`,
  'two ledger rows swapped': `UPDATE pawl_ledger SET body = CASE first
     WHEN 1 THEN (SELECT body FROM pawl_ledger WHERE run = ${RUN} AND first = 2)
     ELSE (SELECT body FROM pawl_ledger WHERE run = ${RUN} AND first = 1) END WHERE run = ${RUN} AND first IN (1, 2)`,
  'a ledger row of another run put in': `UPDATE pawl_ledger SET run = ${RUN} WHERE row = (SELECT max(row) FROM pawl_ledger WHERE run <> ${RUN})`,
  'the head of the chain changed': `UPDATE pawl_runs SET ledger_digest = substr(ledger_digest, 1, 63) || 'x' WHERE run = ${RUN}`,
  'the count of entries changed': `UPDATE pawl_runs SET entry_count = entry_count + 1 WHERE run = ${RUN}`,
  'the record edited': `UPDATE pawl_records SET full_text = replace(full_text, '"step"', '"stop"') WHERE run = ${RUN}`,
  'a patch edited': `UPDATE pawl_patches SET patch = replace(patch, '6', '7') WHERE run = ${RUN} AND number = 1`,
  'a patch removed': `DELETE FROM pawl_patches WHERE run = ${RUN} AND number = 0`,
  'the record removed': `DELETE FROM pawl_records WHERE run = ${RUN}`,
  'the outcome of a receipt changed': `UPDATE pawl_operations SET outcome = 1 WHERE run = ${RUN} AND outcome = 0`,
  'an operation with its receipt removed': `DELETE FROM pawl_operations WHERE operation = (SELECT max(operation) FROM pawl_operations WHERE run = ${RUN} AND outcome = 0)`,
  'a receipt forgotten': `UPDATE pawl_operations SET outcome = NULL, facts = 0 WHERE operation = (SELECT min(operation) FROM pawl_operations WHERE run = ${RUN} AND outcome = 0)`,
  'two receipts exchanged': `UPDATE pawl_operations SET receipt_row = (SELECT max(receipt_row) FROM pawl_operations WHERE run = ${RUN}) WHERE run = ${RUN} AND outcome = 0`,
  'an absence removed': `DELETE FROM pawl_absences WHERE operation = (SELECT min(operation) FROM pawl_absences)`,
  'an absence of another attempt': `UPDATE pawl_absences SET attempt = 9 WHERE operation = (SELECT min(operation) FROM pawl_absences)`,
};

for (const [name, sql] of Object.entries(TAMPERING)) {
  test(`found: ${name}`, async () => {
    const problems = await auditWith(sql);
    expect(problems.length).toBeGreaterThan(0);
    for (const { sequence, what } of problems) {
      expect(sequence).toBeGreaterThanOrEqual(1);
      expect(sequence).toBeLessThanOrEqual(7);
      expect(what).not.toBe('');
    }
  });
}

test('what was done to one run is not said of another', async () => {
  expect(await auditWith('SELECT 1')).toEqual([]);
  const sql = `DELETE FROM pawl_ledger WHERE run <> ${RUN}; UPDATE pawl_records SET full_text = '' WHERE run <> ${RUN}`;
  expect(await auditWith(sql)).toEqual([]);
});

test('a damaged receipt makes its run unreadable and no other', async () => {
  await store.receive('run-a', { operationId: 'op-6', attempt: 1, outcome: 'succeeded', via: 'execute', atMs: 1 });
  database.exec(`UPDATE pawl_ledger SET body = '[]' WHERE row = (SELECT max(row) FROM pawl_ledger)`);

  expect((await store.load('run-a'))?.unreadable).toMatch(/receipt/);
  expect((await store.load('run-b'))?.unreadable).toBeNull();
  expect((await store.list({})).runs).toHaveLength(3);
});
