import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { afterAll, expect, test } from 'vitest';
import { openStore } from '../../src/persistence/open-store.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import type { Store } from '../../src/persistence/store.ts';
import {
  claimRun,
  commitAfter,
  createRun,
  ledgerOf,
  loadRun,
  sampleEvent,
} from '../../src/testing/conformance/trial.ts';
import { observedDatabase } from './observed-database.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
let files = 0;
const newFile = (): string => join(folder.path, `${++files}.db`);

/** The code of what a call throws, or `ok`. */
async function codeOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
}

test('a full disk refuses with STORE_FULL, leaves nothing half written, and goes on once there is room', async () => {
  const database = new Database(newFile());
  const store = sqliteStore({ database });
  const runId = await createRun(store);
  const claim = await claimRun(store, runId);
  database.exec('PRAGMA max_page_count = 60');
  let accepted = 0;
  let code: unknown = 'ok';
  for (; code === 'ok'; accepted++)
    code = await codeOf(store.accept(runId, sampleEvent(`e-${accepted}`, { text: 'x'.repeat(2_000) })));

  expect(code).toBe('STORE_FULL');
  expect((await loadRun(store, runId)).waiting).toBe(accepted - 1);
  expect(await store.audit(runId)).toEqual([]);
  const group = await Promise.all([1, 2, 3].map(() => codeOf(store.commit(commitAfter(claim, big())))));
  expect(group).toEqual(['STORE_FULL', 'STORE_FULL', 'STORE_FULL']);
  expect((await loadRun(store, runId)).facts.sequence).toBe(1);
  database.exec('PRAGMA max_page_count = 100000');
  expect(await codeOf(store.commit(commitAfter(claim, big())))).toBe('ok');
  expect(await store.audit(runId)).toEqual([]);
  await store.close();
  database.close();
});

function big(): { record: { full: string } } {
  return { record: { full: JSON.stringify({ format: 1, text: 'x'.repeat(300_000) }) } };
}

test('a connection that may not write says STORE_READ_ONLY and still reads', async () => {
  const database = new Database(newFile());
  const store = sqliteStore({ database });
  const runId = await createRun(store);
  database.exec('PRAGMA query_only = 1');

  expect(await codeOf(store.accept(runId, sampleEvent()))).toBe('STORE_READ_ONLY');
  expect(await ledgerOf(store, runId)).toHaveLength(1);
  await store.close();
  database.close();
});

test('a file that may not be written says STORE_READ_ONLY', async () => {
  const locked = join(folder.path, 'locked');
  mkdirSync(locked);
  const path = join(locked, 'pawl.db');
  const first = sqliteStore({ path });
  const runId = await createRun(first);
  await first.close();
  chmodSync(path, 0o444);
  chmodSync(locked, 0o555);
  chmodSync(folder.path, 0o755);
  const isRoot = process.getuid?.() === 0;
  // To root every file is writable.
  if (isRoot) process.seteuid?.(65_534);
  try {
    const store = sqliteStore({ path });
    expect(await codeOf(store.accept(runId, sampleEvent()))).toBe('STORE_READ_ONLY');
    await store.close();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(locked, 0o755);
  }
});

test('what is no database, is damaged, is newer or cannot be opened says so at first use', async () => {
  const noDatabase = newFile();
  writeFileSync(noDatabase, 'these are a few lines of text\n'.repeat(400));
  expect(await codeOf(sqliteStore({ path: noDatabase }).load('run'))).toBe('STORE_CORRUPT');
  expect(await codeOf(sqliteStore({ path: join(folder.path, 'no', 'such', 'folder.db') }).load('run'))).toBe(
    'STORE_UNREACHABLE',
  );
  expect(await codeOf(sqliteStore({ path: folder.path }).load('run'))).toBe('STORE_UNREACHABLE');

  const newer = newFile();
  const store = sqliteStore({ path: newer });
  await createRun(store);
  await store.close();
  const database = new Database(newer);
  database.exec(`UPDATE pawl_meta SET value = 99`);
  database.close();
  const refused = sqliteStore({ path: newer });
  await expect(refused.load('run')).rejects.toThrow(/schema 99.*knows 1/);
  expect(await codeOf(refused.nowMs())).toBe('ok');
  await refused.close();
});

test('pages overwritten with nonsense say STORE_CORRUPT', async () => {
  const path = newFile();
  const store = sqliteStore({ path });
  for (let index = 0; index < 20; index++) await createRun(store);
  await store.close();
  const bytes = readFileSync(path);
  writeFileSync(path, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 0xa5)]));

  expect(await codeOf(sqliteStore({ path }).load('run'))).toBe('STORE_CORRUPT');
});

test('another process that holds the store makes a call wait, not the event loop; too long is STORE_BUSY', async () => {
  const path = newFile();
  const store = sqliteStore({ path, busyTimeoutMs: 300 });
  const runId = await createRun(store);
  const other = new Database(path);
  other.exec('BEGIN IMMEDIATE');
  let turns = 0;
  const ticking = setInterval(() => turns++, 5);
  expect(await codeOf(store.accept(runId, sampleEvent('too-long')))).toBe('STORE_BUSY');
  expect(turns).toBeGreaterThan(2);
  clearInterval(ticking);
  setTimeout(() => other.exec('COMMIT'), 60);
  expect(await codeOf(store.accept(runId, sampleEvent('in-time')))).toBe('ok');

  expect((await loadRun(store, runId)).waiting).toBe(1);
  await store.close();
  other.close();
});

test('an unexpected failure of one write in a group is its own; the others are redone', async () => {
  const database = observedDatabase(newFile());
  const store = sqliteStore({ database });
  const runIds = [await createRun(store), await createRun(store), await createRun(store)];
  const claims = await Promise.all(runIds.map((runId) => claimRun(store, runId)));
  const bad = commitAfter(claims[1] ?? claims[0]!);
  database.onStatement = (sql, values) => {
    if (sql.includes('UPDATE "pawl_runs"') && values.includes(bad.commitId)) throw new Error('a bug');
  };
  const commits = claims.map((claim, place) => (place === 1 ? bad : commitAfter(claim)));
  const answers = await Promise.allSettled(commits.map((commit) => store.commit(commit)));
  database.onStatement = () => {};

  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  const sequences = await Promise.all(runIds.map(async (runId) => (await loadRun(store, runId)).facts.sequence));
  expect(sequences).toEqual([2, 1, 2]);
  for (const runId of runIds) expect(await store.audit(runId)).toEqual([]);
  expect(await codeOf(store.commit(bad))).toBe('ok');
  await store.close();
  database.close();
});

test('writes asked for in one turn share one transaction', async () => {
  const database = observedDatabase(newFile());
  const store: Store = sqliteStore({ database });
  const runIds = await Promise.all(Array.from({ length: 64 }, () => createRun(store)));
  const claims = await Promise.all(runIds.map((runId) => claimRun(store, runId)));
  let transactions = 0;
  database.onStatement = (sql) => {
    if (sql === 'COMMIT') transactions++;
  };
  const answers = await Promise.all(claims.map((claim) => store.commit(commitAfter(claim))));

  expect(answers.every(({ kind }) => kind === 'ok')).toBe(true);
  expect(transactions).toBe(1);
  await store.close();
  database.close();
});

test('claim costs the same at step 10 and step 1,000', async () => {
  const database = observedDatabase(newFile());
  const store = sqliteStore({ database, durability: 'process' });
  let plan: string[] = [];
  const costAfter = async (steps: number): Promise<number> => {
    const runId = await createRun(store);
    let claim = await claimRun(store, runId);
    for (let step = 0; step < steps; step++) {
      const commit = commitAfter(claim, {
        keys: [{ keyDigest: `k-${step}`, operationId: `op-${step}`, generation: 1, inputDigest: 'i' }],
        receipts: [{ operationId: `op-${step}`, attempt: 1, outcome: 'succeeded', via: 'execute', atMs: 0 }],
        closes: [{ operationId: `op-${step}`, status: 'succeeded', attempts: 1, inputDigest: 'i' }],
        lease: { keepMs: 60_000 },
      });
      expect((await store.commit(commit)).kind).toBe('ok');
      claim = { ...claim, facts: { ...claim.facts, sequence: commit.sequence, commitId: commit.commitId } };
    }
    await store.release(claim.lease, { dueAtMs: 0 });
    let statements = 0;
    plan = [];
    database.onStatement = (sql) => {
      // The log is moved by a timer.
      if (sql.startsWith('PRAGMA')) return;
      statements++;
      plan.push(sql);
    };
    const claims = await store.claim({ workerId: 'w', leaseMs: 60_000, limit: 5, agents: { refund: [1] } });
    database.onStatement = () => {};
    expect(claims).toHaveLength(1);
    return statements;
  };
  expect(await costAfter(10)).toBe(await costAfter(1_000));
  for (const sql of plan.filter((text) => text.trimStart().startsWith('SELECT'))) {
    const steps = database.raw.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(sql.match(/\?/g)?.map(() => 1) ?? []);
    for (const { detail } of steps as { detail: string }[]) expect(`${detail} ${sql}`).not.toMatch(/^SCAN (?!.*USING)/);
  }
  await store.close();
  database.close();
});

test('durable is what the connection is set to', async () => {
  for (const [durability, level] of [
    ['disk', 2],
    ['process', 1],
  ] as const) {
    const database = new Database(newFile());
    const store = sqliteStore({ database, durability });
    let claim = await claimRun(store, await createRun(store));
    expect(database.prepare('PRAGMA synchronous').get()).toMatchObject({ synchronous: level });
    expect(database.prepare('PRAGMA journal_mode').get()).toMatchObject({ journal_mode: 'wal' });
    for (const [asked, reached] of [
      ['process', true],
      ['disk', durability === 'disk'],
      [{ replicas: 1 }, false],
    ] as const) {
      const answer = await store.commit(commitAfter(claim, { durability: asked }));
      expect(answer).toMatchObject({ kind: 'ok', durable: reached });
      claim = { ...claim, ...(await loadRun(store, claim.runId)) };
    }
    await store.close();
    database.close();
  }
});

test('two namespaces in one file know nothing of each other', async () => {
  const path = newFile();
  const [a, b] = [sqliteStore({ path }), sqliteStore({ path, namespace: 'other' })];
  await createRun(a, { runId: 'run-shared' });

  expect(await b.load('run-shared')).toBeNull();
  await createRun(b, { runId: 'run-shared' });
  await Promise.all([a.close(), b.close()]);
});

test('many starters of one new file make one schema', async () => {
  const path = newFile();
  const stores = Array.from({ length: 6 }, () => sqliteStore({ path }));
  const answers = await Promise.all(stores.map((store) => codeOf(store.load('run'))));

  expect(answers).toEqual(Array(6).fill('ok'));
  await Promise.all(stores.map((store) => store.close()));
});

test('openStore knows its URLs, creates the folder, and says what is not there yet', async () => {
  const path = join(folder.path, 'a', 'b', 'pawl.db');
  const store = openStore(`sqlite:${path}`);
  await createRun(store);
  expect(existsSync(path)).toBe(true);
  expect(openStore('memory:').kind).toBe('memory');
  expect(openStore('sqlite::memory:').kind).toBe('sqlite');
  for (const url of ['redis://localhost', 'postgres://localhost/pawl', 'sqlite:', 'file.db', '']) {
    expect(() => openStore(url)).toThrow(expect.objectContaining({ code: 'STORE_URL_INVALID' }));
  }
  expect(() => openStore('redis://localhost')).toThrow(/not available yet/);
  expect(() => openStore(`sqlite:${path}/below/a/file.db`)).toThrow(
    expect.objectContaining({ code: 'STORE_UNREACHABLE' }),
  );
  await store.close();
});
