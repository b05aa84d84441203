/** Hints of what other processes wrote: while somebody watches, a cheap look at SQLite's counter of foreign commits. */
import type { ChangeFeed } from '../change-feed.ts';
import { numberOf, type Database } from './database.ts';
import { wakeableRuns } from './stored-runs.ts';

const LOOK_EVERY_MS = 50;
const MOST_HINTS = 1_000;

export class ForeignChanges {
  readonly #database: Database;
  readonly #feed: ChangeFeed;
  readonly #nowMs: () => number;
  #version = -1;
  #timer: NodeJS.Timeout | null = null;

  constructor(database: Database, feed: ChangeFeed, nowMs: () => number) {
    this.#database = database;
    this.#feed = feed;
    this.#nowMs = nowMs;
  }

  start(): void {
    if (this.#timer) return;
    this.#version = this.#read();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    if (!this.#feed.isWatched) return this.stop();
    try {
      const version = this.#read();
      if (version === this.#version) return;
      this.#version = version;
      for (const runId of wakeableRuns(this.#database, this.#nowMs(), MOST_HINTS)) this.#feed.emit(runId);
    } catch {
      // A hint may be lost; the next look or the worker's sweep finds the run.
    }
  }

  #read(): number {
    return numberOf(this.#database.get('PRAGMA data_version')?.[0]);
  }
}
