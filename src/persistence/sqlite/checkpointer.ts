/**
 * Moves the write-ahead log into the database file when nothing else is to be done, and at the latest after so many
 * writes: never inside a commit that somebody waits for. A crash loses nothing; the log is replayed.
 */
import { systemClock } from '../../clock.ts';
import type { Database } from './database.ts';

const IDLE_MS = 30;
/** About 16 MB of log. */
const MOST_WRITES = 2_000;

export class Checkpointer {
  readonly #database: Database;
  #writes = 0;
  #lastWriteMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  wrote(items: number): void {
    this.#writes += items;
    this.#lastWriteMs = systemClock.monotonicMs();
    if (this.#writes >= MOST_WRITES) this.#writes = this.#checkpoint() ? 0 : MOST_WRITES / 2;
    else this.#arm();
  }

  stop(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#writes > 0) this.#checkpoint();
  }

  #arm(): void {
    if (this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (systemClock.monotonicMs() - this.#lastWriteMs < IDLE_MS) return this.#arm();
      if (this.#checkpoint()) this.#writes = 0;
    }, IDLE_MS);
    this.#timer.unref();
  }

  /** Passive: waits for no reader and no other process; what it could not move stays for the next time. */
  #checkpoint(): boolean {
    try {
      this.#database.get('PRAGMA wal_checkpoint(PASSIVE)');
      return true;
    } catch {
      // The log is still whole; a later checkpoint or the next opener moves it.
      return false;
    }
  }
}
