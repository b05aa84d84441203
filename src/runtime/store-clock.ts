/** The store's time as a worker may assume it: never ahead of the store, however wrong the worker's own clock is. */
import type { Clock } from '../clock.ts';

export class StoreClock {
  readonly #clock: Clock;
  #storeMs: number;
  #monotonicMs: number;

  constructor(clock: Clock, storeNowMs: number) {
    this.#clock = clock;
    this.#storeMs = storeNowMs;
    this.#monotonicMs = clock.monotonicMs();
  }

  /** Notes an answer of the store. Taken when it arrives, so the time in between makes the estimate late, never early. */
  sync(storeNowMs: number): void {
    const nowMs = this.nowMs();
    this.#storeMs = Math.max(storeNowMs, nowMs);
    this.#monotonicMs = this.#clock.monotonicMs();
  }

  nowMs(): number {
    return Math.floor(this.#storeMs + this.#clock.monotonicMs() - this.#monotonicMs);
  }
}
