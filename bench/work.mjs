/** Runs the work on one store through the public package and times its steps. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createAgent } from './agent.mjs';

const LEASE_MS = 60_000;

/**
 * @typedef {object} WorkSlice
 * @property {number} stepsPerSecond From the worker's start to the last run's final commit; claims count.
 * @property {number[]} stepUs Between two calls of a run's tool: a whole step, answer to next call.
 * @property {number} commits
 * @property {number} steps
 * @property {number} cpuUs Of this process, per step.
 */

/** One store in a folder of its own. A runtime lives for one slice; the store for all. */
export class Workplace {
  #runs = 0;
  #commits = 0;
  #closed = 0;
  #whenClosed = () => {};

  /**
   * @param {import('./pawl.d.ts').Pawl} pawl
   * @param {{ kind: 'sqlite' | 'memory', durability: 'disk' | 'process', folder: string }} place
   */
  constructor(pawl, place) {
    this.pawl = pawl;
    this.place = place;
    this.folder = mkdtempSync(join(place.folder, 'pawl-bench-'));
    this.path = join(this.folder, 'pawl.db');
    this.store =
      place.kind === 'memory'
        ? pawl.memoryStore()
        : pawl.sqliteStore({ path: this.path, durability: place.durability });
    this.#countCommits();
    // Closing a runtime closes its store; this one is used again.
    this.shared = Object.assign(Object.create(this.store), { close: async () => {} });
    for (const name of ['create', 'load', 'accept', 'verdict', 'claim', 'commit', 'receive', 'renew', 'release']) {
      this.shared[name] = this.store[name].bind(this.store);
    }
    for (const name of ['watch', 'registerStructure', 'nowMs', 'list', 'read', 'due', 'reserve', 'settleReservation']) {
      this.shared[name] = this.store[name].bind(this.store);
    }
  }

  /** @param {Parameters<typeof createAgent>[1]} watch */
  runtime(watch, options = {}) {
    return this.pawl.createRuntime({
      agents: [createAgent(this.pawl, watch)],
      store: this.shared,
      durability: this.place.durability,
      leaseMs: LEASE_MS,
      ...options,
    });
  }

  /**
   * Starts the runs, then lets a worker take them and waits for the last final commit.
   * @param {{ runs: number, steps: number, concurrency: number, grows?: boolean }} work
   * @returns {Promise<WorkSlice & { callsMs: Map<string, number[]> }>}
   */
  async slice({ runs, steps, concurrency, grows = false }) {
    /** @type {Map<string, number[]>} */
    const callsMs = new Map();
    const pawl = this.runtime({ called: (runId) => callsMs.get(runId)?.push(performance.now()) });
    const ids = Array.from({ length: runs }, () => `run-${this.#runs++}`);
    for (const runId of ids) callsMs.set(runId, []);
    await Promise.all(ids.map((runId) => pawl.start('bench', { runId, input: { steps, grows } })));
    this.#commits = 0;
    this.#closed = 0;
    const done = new Promise((resolve) => {
      this.#whenClosed = () => this.#closed === runs && resolve(undefined);
    });
    const cpu = process.cpuUsage();
    const startMs = performance.now();
    pawl.work({ concurrency });
    await done;
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(cpu);
    await pawl.close();
    const total = runs * steps;
    return {
      stepsPerSecond: (total / elapsedMs) * 1000,
      stepUs: [...callsMs.values()].flatMap(intervalsUs),
      commits: this.#commits,
      steps: total,
      cpuUs: (user + system) / total,
      callsMs,
    };
  }

  /** Bytes of the file; another connection moves the log into it first. @param {new (path: string) => any} Database */
  sizeBytes(Database) {
    const database = new Database(this.path);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
    return statSync(this.path).size;
  }

  async close() {
    await this.store.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #countCommits() {
    const commit = this.store.commit.bind(this.store);
    this.store.commit = (given) => {
      this.#commits++;
      const answer = commit(given);
      if (given.close) answer.then(() => (this.#closed++, this.#whenClosed()), () => {});
      return answer;
    };
  }
}

/** @param {readonly number[]} times */
export function intervalsUs(times) {
  return times.slice(1).map((time, index) => (time - times[index]) * 1000);
}
