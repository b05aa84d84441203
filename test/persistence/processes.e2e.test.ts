import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import type { Store } from '../../src/persistence/store.ts';
import { createRun, ledgerOf, loadRun } from '../../src/testing/conformance/trial.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const seed = Number(process.env['PAWL_SEED'] ?? Date.now() % 2 ** 31);
const RUNS = ['run-1', 'run-2', 'run-3', 'run-4'];

interface Worker {
  process: ChildProcess;
  /** Highest sequence that the child was told is durable, by run. */
  durable: Map<string, number>;
  /** Has committed once; the leases of a killed one end by themselves before that. */
  ready: Promise<unknown>;
  ended: Promise<unknown>;
}

function startWorker(path: string, name: string, rounds: number): Worker {
  const here = import.meta.dirname;
  const jiti = join(here, '../../node_modules/.bin/jiti');
  // The seam is the process, so that a signal reaches the one that holds the file.
  const child = spawn(process.execPath, [jiti, join(here, 'child-worker.ts'), path, name, String(rounds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const durable = new Map<string, number>();
  const lines = createInterface({ input: child.stdout });
  const ready = once(lines, 'line');
  lines.on('line', (line) => {
    const [, runId = '', sequence] = line.split(' ');
    durable.set(runId, Math.max(durable.get(runId) ?? 0, Number(sequence)));
  });
  return { process: child, durable, ready, ended: Promise.all([once(child, 'exit'), once(lines, 'close')]) };
}

async function checkRuns(store: Store): Promise<void> {
  for (const runId of RUNS) {
    const run = await loadRun(store, runId);
    const entries = await ledgerOf(store, runId);
    expect(run.unreadable).toBeNull();
    expect(await store.audit(runId)).toEqual([]);
    expect(entries.map(({ index }) => index)).toEqual([...entries.keys()]);
    expect(entries.filter(({ kind }) => kind === 'transitioned')).toHaveLength(run.facts.sequence - 1);
    expect(run.record?.machine.context).toMatchObject(run.facts.sequence > 1 ? { sequence: run.facts.sequence } : {});
  }
}

test('two processes on one file: each step is committed once, and nothing is lost', async () => {
  const path = join(folder.path, 'shared.db');
  const store = sqliteStore({ path });
  for (const runId of RUNS) await createRun(store, { runId });
  const workers = [startWorker(path, 'a', 60), startWorker(path, 'b', 60)];
  await Promise.all(workers.map(({ ended }) => ended));

  expect(workers.map(({ process: { exitCode } }) => exitCode)).toEqual([0, 0]);
  await checkRuns(store);
  for (const runId of RUNS) {
    const { facts } = await loadRun(store, runId);
    expect(Math.max(...workers.map(({ durable }) => durable.get(runId) ?? 0))).toBe(facts.sequence);
  }
  await store.close();
});

test(`killed at random moments, the store keeps all that it said is durable (PAWL_SEED=${seed})`, async () => {
  const path = join(folder.path, 'killed.db');
  const first = sqliteStore({ path });
  for (const runId of RUNS) await createRun(first, { runId });
  await first.close();
  for (let round = 0; round < 4; round++) {
    const worker = startWorker(path, `w${round}`, 1_000_000);
    await worker.ready;
    await new Promise((resolve) => setTimeout(resolve, (seed * (round + 7)) % 300));
    worker.process.kill('SIGKILL');
    await worker.ended;
    const store = sqliteStore({ path });
    await checkRuns(store);
    for (const [runId, sequence] of worker.durable) {
      expect((await loadRun(store, runId)).facts.sequence).toBeGreaterThanOrEqual(sequence);
    }
    expect(worker.durable.size).toBeGreaterThan(0);
    await store.close();
  }
});
