/**
 * Group commit: all writes that are asked for in one turn of the event loop share one transaction and one sync. Nobody
 * is answered before that transaction is committed; after a crash all of it is there or nothing.
 */
import { systemClock } from '../../clock.ts';
import { isPawlError } from '../../errors.ts';
import type { Database } from './database.ts';
import { isBusy, toStoreError } from './sqlite-errors.ts';

interface Item {
  /** Does all its checks before its first write, throws a PawlError only from a check, and returns how to answer. */
  work: () => () => void;
  reject: (error: unknown) => void;
  /** Monotonic; after this the item is given up as STORE_BUSY. */
  deadlineMs: number;
}

/** Bounds how long one transaction keeps the event loop and other processes waiting. */
const MOST_ITEMS = 256;
const LONGEST_PAUSE_MS = 25;

export class WriteQueue {
  readonly #database: Database;
  readonly #place: string;
  readonly #busyTimeoutMs: number;
  /** Called after each committed transaction with the number of items in it. */
  readonly #onCommitted: (items: number) => void;
  #pending: Item[] = [];
  #isScheduled = false;
  #pauseMs = 1;
  #whenEmpty: (() => void)[] = [];

  constructor(database: Database, place: string, busyTimeoutMs: number, onCommitted: (items: number) => void) {
    this.#database = database;
    this.#place = place;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#onCommitted = onCommitted;
  }

  /** Runs `work` inside a transaction; resolves with its result once that is committed. */
  add<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const deadlineMs = systemClock.monotonicMs() + this.#busyTimeoutMs;
      const item = (): (() => void) => {
        const value = work();
        return () => resolve(value);
      };
      this.#pending.push({ work: item, reject, deadlineMs });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setImmediate(this.#flush);
    });
  }

  /** Resolves when nothing waits. */
  drained(): Promise<void> {
    if (!this.#isScheduled) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  #flush = (): void => {
    const batch = this.#pending.splice(0, MOST_ITEMS);
    const isBlocked = !this.#attempt(batch);
    if (isBlocked) return this.#backOff();
    this.#pauseMs = 1;
    if (this.#pending.length > 0) return void setImmediate(this.#flush);
    this.#isScheduled = false;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  };

  /** Tries again later without holding the event loop; each time a little later; the clock's fraction keeps
   * processes out of step. */
  #backOff(): void {
    const nowMs = systemClock.monotonicMs();
    const late = this.#pending.filter((item) => item.deadlineMs <= nowMs);
    this.#pending = this.#pending.filter((item) => item.deadlineMs > nowMs);
    const busy = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
    for (const item of late) item.reject(toStoreError(busy, this.#place));
    setTimeout(this.#flush, this.#pauseMs * (0.5 + (nowMs % 1)));
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  /** One transaction for all; when it fails as a whole, one for each. False when the store is busy: all is queued again. */
  #attempt(batch: Item[]): boolean {
    if (batch.length === 0) return true;
    const answers: (() => void)[] = [];
    try {
      this.#database.exec('BEGIN IMMEDIATE');
    } catch (error) {
      if (isBusy(error)) {
        this.#pending.unshift(...batch);
        return false;
      }
      for (const item of batch) item.reject(toStoreError(error, this.#place));
      return true;
    }
    try {
      for (const item of batch) answers.push(answer(item));
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#rollBack();
      if (batch.length > 1) return this.#attemptEach(batch);
      batch[0]?.reject(toStoreError(error, this.#place));
      return true;
    }
    for (const tell of answers) tell();
    this.#onCommitted(batch.length);
    return true;
  }

  #attemptEach(batch: Item[]): boolean {
    for (const [index, item] of batch.entries()) {
      if (this.#attempt([item])) continue;
      // The item itself was queued again; those after it follow it.
      this.#pending.splice(1, 0, ...batch.slice(index + 1));
      return false;
    }
    return true;
  }

  /** SQLite rolls back by itself on some errors, and then says that there is no transaction. */
  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK');
    } catch {
      // Nothing is open; that is what was wanted.
    }
  }
}

/** What the item will be told once the transaction is committed. Its own refusal does not spoil the others. */
function answer(item: Item): () => void {
  try {
    return item.work();
  } catch (error) {
    if (!isPawlError(error)) throw error;
    return () => item.reject(error);
  }
}
