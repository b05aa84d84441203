/** A user's own agent, through the installed package: killed without warning, and frozen in the middle of a call. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { installPackage, type InstalledProject } from './installed-package.ts';
import { startProvider } from './provider-server.ts';

let project: InstalledProject;
beforeAll(() => {
  project = installPackage();
}, 120_000);
afterAll(() => project.remove());

interface WorkerProcess {
  process: ChildProcess;
  pid: number;
  messages: string[];
  exited: Promise<void>;
  working: Promise<void>;
}

function startWorker(storeUrl: string, providerUrl: string, leaseMs: number, runs: number): WorkerProcess {
  const child = spawn(process.execPath, ['worker.mjs', storeUrl, providerUrl, String(leaseMs), String(runs)], {
    cwd: project.folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const messages: string[] = [];
  const working = new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().split('\n').filter(Boolean)) {
        messages.push((JSON.parse(line) as { message: string }).message);
      }
      if (messages.includes('working')) resolve();
    });
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { process: child, pid: child.pid as number, messages, exited, working };
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('an agent written against the package', () => {
  test('survives kill -9 at random moments: every run is done, every effect once', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    process.stdout.write(`own-agent seed ${seed}\n`);
    const random = lcg(seed);
    const provider = await startProvider();
    provider.beforeAnswer = () => sleep(random() * 60);
    const folder = mkdtempSync(join(tmpdir(), 'pawl-own-'));
    const url = `sqlite:${join(folder, 'pawl.db')}`;
    const runs = 24;
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    let kills = 0;
    const untilMs = Date.now() + 40_000;
    for (;;) {
      const worker = startWorker(url, provider.url, 600, runs);
      // By what it has done, not by time: a slow machine kills no faster than it works.
      const enough = provider.requests + 1 + Math.floor(random() * 12);
      await until(async () => provider.requests >= enough, 4_000).catch(() => {});
      await sleep(random() * 40);
      process.kill(worker.pid, 'SIGKILL');
      kills++;
      await worker.exited;
      const { runs: done } = await store.list({ status: 'done', limit: 1000 });
      if (done.length === runs) break;
      expect(Date.now(), `only ${done.length} of ${runs} runs are done after ${kills} kills`).toBeLessThan(untilMs);
    }
    const perOrder = new Map<string, number>();
    for (const { name, order } of provider.effects) {
      perOrder.set(`${name} ${order}`, (perOrder.get(`${name} ${order}`) ?? 0) + 1);
    }
    expect(perOrder.size).toBe(2 * runs);
    expect([...perOrder.values()].every((count) => count === 1)).toBe(true);
    expect(kills).toBeGreaterThan(2);
    for (const run of (await store.list({ limit: 1000 })).runs) expect(await store.audit(run.runId)).toEqual([]);
    await store.close();
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  test('a worker frozen in the middle of a call and thawed after its lease: one effect, its commit is refused', async () => {
    const provider = await startProvider();
    const folder = mkdtempSync(join(tmpdir(), 'pawl-frozen-'));
    const url = `sqlite:${join(folder, 'pawl.db')}`;
    let frozen: () => void = () => {};
    const reached = new Promise<void>((resolve) => {
      frozen = resolve;
    });
    let first: WorkerProcess | null = null;
    provider.beforeAnswer = async (effect) => {
      if (effect.name !== 'book' || !first) return;
      process.kill(first.pid, 'SIGSTOP');
      first = null;
      frozen();
    };
    const one = startWorker(url, provider.url, 600, 1);
    first = one;
    await reached;
    const two = startWorker(url, provider.url, 600, 0);
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    await until(async () => (await store.load('run-0'))?.record?.status === 'done');
    const before = await store.load('run-0');
    process.kill(one.pid, 'SIGCONT');
    await until(async () => one.messages.includes('the lease of a run was lost'));
    await sleep(200);
    expect(provider.effects.map((effect) => effect.name)).toEqual(['book', 'ship']);
    expect((await store.load('run-0'))?.facts.sequence).toBe(before?.facts.sequence);
    expect(await store.audit('run-0')).toEqual([]);
    for (const worker of [one, two]) {
      process.kill(worker.pid, 'SIGKILL');
      await worker.exited;
    }
    await store.close();
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  }, 30_000);
});

async function until(condition: () => Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const untilMs = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > untilMs) throw new Error(`not within ${timeoutMs} ms`);
    await sleep(5);
  }
}

function lcg(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
