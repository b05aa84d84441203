/**
 * The floor under the SQLite store: a bare client that writes what a durable step has to write, with the same guarantees,
 * and nothing else. It imports nothing of `src/`. One transaction per step (or per group of steps):
 *
 * - the version check and the snapshot of 2 KB in one UPDATE that must change exactly one row (fence and sequence match);
 * - a ledger entry with the 290-byte event and its envelope, found through an index;
 * - an operation row, found through an index.
 *
 * About 490 bytes a step stay in the file; the snapshot is overwritten in place. Texts are ready-made: this client
 * neither serializes nor digests, so it is lower than anything that has to.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'libsql';

/** Runs that are worked at once in a group. */
export const GROUP = 64;

/**
 * How fast the floor was beside an empty transaction when it was first measured: the time of an empty transaction
 * divided by the time of a step, medians of `measureFitness()`, NORMAL, so that no disk plays a part. Node 20.20,
 * libsql 0.5.29, two shared cores, 30 Nov 2026, median of nine runs of `node bench/floor-sqlite.mjs`. A
 * floor below `FIT` of it has been made slower than it was, and nothing may be measured against it.
 */
export const REFERENCE = { single: 0.3, group: 0.455 };
const FIT = 0.8;

const SNAPSHOT = text(2048);
const ENTRY = text(290 + 80);

/** @typedef {{ name: string, stepsPerSecond: number, stepUs: number[], cpuUs: number }} FloorSlice `cpuUs`: per step. */

/** One database with the floor's tables in a folder of its own. */
export class Floor {
  /** @param {'NORMAL' | 'FULL'} synchronous @param {string} folder */
  constructor(synchronous, folder = tmpdir()) {
    this.synchronous = synchronous;
    this.folder = mkdtempSync(join(folder, 'pawl-floor-'));
    this.path = join(this.folder, 'floor.db');
    this.database = new Database(this.path);
    this.database.exec('PRAGMA journal_mode = WAL');
    this.database.exec(`PRAGMA synchronous = ${synchronous}`);
    this.database.exec(`
      CREATE TABLE runs (run INTEGER PRIMARY KEY, fence INTEGER, sequence INTEGER, snapshot TEXT);
      CREATE TABLE ledger (entry INTEGER PRIMARY KEY, run INTEGER, sequence INTEGER, body TEXT);
      CREATE INDEX ledger_by_run ON ledger (run, sequence);
      CREATE TABLE operations (operation INTEGER PRIMARY KEY, run INTEGER, id INTEGER, status TEXT);
      CREATE INDEX operations_by_id ON operations (run, id);
      CREATE TABLE idle (one INTEGER PRIMARY KEY, value INTEGER);
      INSERT INTO idle VALUES (1, 0);`);
    const prepare = (/** @type {string} */ sql) => this.database.prepare(sql);
    this.begin = prepare('BEGIN IMMEDIATE');
    this.commit = prepare('COMMIT');
    this.insertRun = prepare('INSERT INTO runs (fence, sequence, snapshot) VALUES (1, 0, ?)');
    this.advance = prepare('UPDATE runs SET sequence = ?, snapshot = ? WHERE run = ? AND fence = ? AND sequence = ?');
    this.append = prepare('INSERT INTO ledger (run, sequence, body) VALUES (?, ?, ?)');
    this.note = prepare('INSERT INTO operations (run, id, status) VALUES (?, ?, ?)');
    this.touch = prepare('UPDATE idle SET value = ? WHERE one = 1');
    this.count = 0;
  }

  /** @returns {number} */
  newRun() {
    return Number(this.insertRun.run(SNAPSHOT).lastInsertRowid);
  }

  /** Inside a transaction. @param {number} run @param {number} sequence */
  step(run, sequence) {
    const next = sequence + 1;
    if (this.advance.run(next, `${next}${SNAPSHOT}`, run, 1, sequence).changes !== 1) throw new Error('stale');
    this.append.run(run, next, `${next}${ENTRY}`);
    this.note.run(run, (this.count++ * 2654435761) % 2 ** 48, 'succeeded');
  }

  /** Runs one after another, each step its own transaction. @param {number} runs @param {number} steps @returns {FloorSlice} */
  single(runs, steps) {
    const numbers = Array.from({ length: runs }, () => this.newRun());
    const stepUs = [];
    const start = begin();
    for (const run of numbers) {
      for (let sequence = 0; sequence < steps; sequence++) {
        const beganMs = performance.now();
        this.begin.run();
        this.step(run, sequence);
        this.commit.run();
        stepUs.push((performance.now() - beganMs) * 1000);
      }
    }
    return slice(`sqlite ${this.synchronous}`, stepUs, start);
  }

  /** All runs at once; the steps of one turn of the event loop share a transaction. @param {number} runs @param {number} steps @returns {Promise<FloorSlice>} */
  async group(runs, steps) {
    const numbers = Array.from({ length: runs }, () => this.newRun());
    /** @type {{ run: number, sequence: number, answer: () => void }[]} */
    let queue = [];
    const flush = () => {
      const batch = queue;
      queue = [];
      this.begin.run();
      for (const { run, sequence } of batch) this.step(run, sequence);
      this.commit.run();
      for (const { answer } of batch) answer();
    };
    const commit = (/** @type {number} */ run, /** @type {number} */ sequence) =>
      new Promise((resolve) => {
        queue.push({ run, sequence, answer: () => resolve(undefined) });
        if (queue.length === 1) setImmediate(flush);
      });
    /** @type {number[]} */
    const stepUs = [];
    const start = begin();
    await Promise.all(
      numbers.map(async (run) => {
        for (let sequence = 0; sequence < steps; sequence++) {
          const beganMs = performance.now();
          await commit(run, sequence);
          stepUs.push((performance.now() - beganMs) * 1000);
        }
      }),
    );
    return slice(`sqlite ${this.synchronous} group`, stepUs, start);
  }

  /** A transaction that has as little to write as one can have. @param {number} times @returns {FloorSlice} */
  empty(times) {
    const stepUs = [];
    const start = begin();
    for (let index = 0; index < times; index++) {
      const beganMs = performance.now();
      this.begin.run();
      this.touch.run(index);
      this.commit.run();
      stepUs.push((performance.now() - beganMs) * 1000);
    }
    return slice(`empty transaction ${this.synchronous}`, stepUs, start);
  }

  /** Bytes of the file with nothing left in the log. */
  sizeBytes() {
    this.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return statSync(this.path).size;
  }

  close() {
    this.database.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * The floor's ratio to an empty transaction, now and when it was first measured.
 * @param {string} [folder]
 */
export async function measureFitness(folder, rounds = 9) {
  const floor = new Floor('NORMAL', folder);
  /** @type {{ single: number[], group: number[] }} */
  const ratios = { single: [], group: [] };
  for (let round = 0; round < rounds; round++) {
    const before = middle(floor.empty(300).stepUs);
    const single = middle(floor.single(15, 20).stepUs);
    const group = middle((await floor.group(GROUP, 10)).stepUs) / GROUP;
    const empty = (before + middle(floor.empty(300).stepUs)) / 2;
    ratios.single.push(empty / single);
    ratios.group.push(empty / group);
  }
  floor.close();
  const now = { single: middle(ratios.single), group: middle(ratios.group) };
  const isFit = now.single >= FIT * REFERENCE.single && now.group >= FIT * REFERENCE.group;
  return { ...now, reference: REFERENCE, isFit };
}

/** @returns {{ ms: number, cpu: NodeJS.CpuUsage }} */
function begin() {
  return { ms: performance.now(), cpu: process.cpuUsage() };
}

/** @param {string} name @param {number[]} stepUs @param {ReturnType<typeof begin>} start @returns {FloorSlice} */
function slice(name, stepUs, start) {
  const { user, system } = process.cpuUsage(start.cpu);
  const elapsedMs = performance.now() - start.ms;
  return { name, stepsPerSecond: (stepUs.length / elapsedMs) * 1000, stepUs, cpuUs: (user + system) / stepUs.length };
}

/** @param {readonly number[]} values */
function middle(values) {
  return Float64Array.from(values).sort()[values.length >> 1] ?? Number.NaN;
}

/** Not one letter repeated: bytes as a snapshot has them. @param {number} bytes */
function text(bytes) {
  return Array.from({ length: bytes }, (_, index) => String.fromCharCode(97 + ((index * 7) % 26))).join('');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write(`${JSON.stringify(await measureFitness())}\n`);
}
