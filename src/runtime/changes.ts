/** Who waits for a change of which run, and the hints that wake them: own commits at once, others by the store's watch. */
import { WOKEN, type Clock } from '../clock.ts';
import type { Store } from '../persistence/store.ts';

/** A waiter looks again after this long even without a hint: hints may be lost. */
const LOOK_AGAIN_MS = 250;

export class Changes {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #listeners = new Set<(runId: string) => void>();
  readonly #closed = new AbortController();
  #watching: Promise<void> | null = null;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Calls `listener` for every hint until the returned function is called. */
  listen(listener: (runId: string) => void): () => void {
    this.#listeners.add(listener);
    this.#watch();
    return () => void this.#listeners.delete(listener);
  }

  /** This process changed a run. */
  notify(runId: string): void {
    for (const wake of this.#waiting.get(runId) ?? []) wake();
  }

  /** A run may be due or have changed, here or elsewhere. */
  hint(runId: string): void {
    this.notify(runId);
    for (const listener of this.#listeners) listener(runId);
  }

  /** Looks until `look` gives something or the time is over (then null). A look happens at once and after each hint. */
  async until<T>(
    runId: string,
    look: () => Promise<T | null>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<T | null> {
    this.#watch();
    const endMs = this.#clock.monotonicMs() + timeoutMs;
    let hinted = false;
    let wake = (): void => {};
    const onHint = (): void => {
      hinted = true;
      wake();
    };
    const waiting = this.#waiting.get(runId) ?? new Set();
    this.#waiting.set(runId, waiting.add(onHint));
    try {
      for (;;) {
        hinted = false;
        const found = await look();
        const leftMs = endMs - this.#clock.monotonicMs();
        if (found !== null || leftMs <= 0 || signal?.aborted || this.#closed.signal.aborted) return found;
        if (hinted) continue;
        const timer = new AbortController();
        wake = () => timer.abort(WOKEN);
        signal?.addEventListener('abort', wake);
        await this.#clock.sleep(Math.min(leftMs, LOOK_AGAIN_MS), timer.signal);
        signal?.removeEventListener('abort', wake);
      }
    } finally {
      waiting.delete(onHint);
      if (waiting.size === 0) this.#waiting.delete(runId);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    for (const waiting of this.#waiting.values()) for (const wake of waiting) wake();
    await this.#watching;
  }

  #watch(): void {
    this.#watching ??= this.#follow();
  }

  async #follow(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      try {
        for await (const runId of this.#store.watch(this.#closed.signal)) this.hint(runId);
        return;
      } catch {
        // A hint that is lost costs time, nothing else: waiters look again and workers sweep.
        await this.#clock.sleep(LOOK_AGAIN_MS, this.#closed.signal);
      }
    }
  }
}
