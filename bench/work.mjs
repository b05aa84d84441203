/** Runs the work on one store through the public package and times its steps. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createAgent } from './agent.mjs';

const LEASE_MS = 60_000;
const WRITES = new Set(['claim', 'receive', 'renew', 'release', 'reserve', 'settleReservation', 'markUnreadable']);

/**
 * @typedef {object} WorkSlice
 * @property {number} stepsPerSecond From the worker's start to the last run's final commit; claims count.
 * @property {number[]} stepUs Between two calls of a run's tool: a whole step, answer to next call.
 * @property {number} writes Calls of the store that write; a claim may write for many runs.
 * @property {number} steps
 * @property {number} cpuUs Of this process, per step.
 */

/** One store in a folder of its own. A runtime lives for one slice; the store for all. */
export class Workplace {
  #runs = 0;
  #writes = 0;
  #members = new Map();
  #closed = 0;
  #whenClosed = () => {};
  /** @type {import('./agent.mjs').Watch} */
  #watch = { called: () => {} };
  /** Made once, as in a service: a new machine would be new code to the engine. */
  #agent;

  /**
   * @param {import('./pawl.d.ts').Pawl} pawl
   * @param {{ kind: 'sqlite' | 'memory', durability: 'disk' | 'process', folder: string }} place
   */
  constructor(pawl, place) {
    this.pawl = pawl;
    this.place = place;
    this.#agent = createAgent(pawl, () => this.#watch);
    this.folder = mkdtempSync(join(place.folder, 'pawl-bench-'));
    this.path = join(this.folder, 'pawl.db');
    this.store =
      place.kind === 'memory'
        ? pawl.memoryStore()
        : pawl.sqliteStore({ path: this.path, durability: place.durability });
    // Closing a runtime closes its store; this one is used again, and says how often it writes.
    this.shared = new Proxy(this.store, { get: (store, name) => this.#member(store, name) });
  }

  /** @param {import('./agent.mjs').Watch} watch */
  runtime(watch, options = {}) {
    this.#watch = watch;
    return this.pawl.createRuntime({
      agents: [this.#agent],
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
    this.#writes = 0;
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
      writes: this.#writes,
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

  #member(store, name) {
    const known = this.#members.get(name);
    if (known !== undefined) return known;
    const value = store[name];
    let member = typeof value === 'function' ? value.bind(store) : value;
    if (name === 'close') member = async () => {};
    if (name === 'commit') member = (commit) => this.#commit(store, commit);
    else if (WRITES.has(name)) {
      const call = member;
      member = (...args) => (this.#writes++, call(...args));
    }
    this.#members.set(name, member);
    return member;
  }

  #commit(store, commit) {
    this.#writes++;
    const answer = store.commit(commit);
    if (commit.close) {
      answer.then(
        () => {
          this.#closed++;
          this.#whenClosed();
        },
        () => {},
      );
    }
    return answer;
  }
}

/** @param {readonly number[]} times */
export function intervalsUs(times) {
  return times.slice(1).map((time, index) => (time - times[index]) * 1000);
}
