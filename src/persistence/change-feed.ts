/** Hints of changed runs for whoever watches in this process. Each watcher has its own set of ids: doubled ids are one. */

/** A watcher that does not read is told of this many different runs at most; hints may be lost. */
const MOST_PENDING = 10_000;

interface Watcher {
  pending: Set<string>;
  wake: () => void;
}

export class ChangeFeed {
  readonly #watchers = new Set<Watcher>();
  #isClosed = false;

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  emit(runId: string): void {
    for (const watcher of this.#watchers) {
      if (watcher.pending.size >= MOST_PENDING) continue;
      watcher.pending.add(runId);
      watcher.wake();
    }
  }

  /** Watching begins with this call, not with the first `next`. Ends when `signal` aborts or the feed is closed. */
  watch(signal: AbortSignal): AsyncIterable<string> {
    const watcher: Watcher = { pending: new Set(), wake: () => {} };
    if (!signal.aborted && !this.#isClosed) this.#watchers.add(watcher);
    const stop = (): void => {
      this.#watchers.delete(watcher);
      watcher.wake();
    };
    signal.addEventListener('abort', stop, { once: true });
    return this.#hints(watcher, stop, signal);
  }

  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#watchers) {
      this.#watchers.delete(watcher);
      watcher.wake();
    }
  }

  async *#hints(watcher: Watcher, stop: () => void, signal: AbortSignal): AsyncGenerator<string> {
    try {
      while (this.#watchers.has(watcher)) {
        for (const runId of watcher.pending) {
          watcher.pending.delete(runId);
          yield runId;
        }
        if (!this.#watchers.has(watcher)) return;
        await new Promise<void>((resolve) => {
          watcher.wake = resolve;
          if (watcher.pending.size > 0 || !this.#watchers.has(watcher)) resolve();
        });
      }
    } finally {
      stop();
      signal.removeEventListener('abort', stop);
    }
  }
}
