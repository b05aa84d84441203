/** The ports through which time and chance enter, and their system versions. Nothing else in src reads either. */
import { randomUUID } from 'node:crypto';

export interface Clock {
  /** Epoch milliseconds. May jump; never used to judge a lease. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
  /** Resolves after `delayMs` (0 to any length) or at once when `signal` aborts; never rejects. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Why a wait is ended early. An abort without a reason makes an exception with its stack, each time. */
export const WOKEN = 'woken';

export interface Ids {
  /** A new unique id of `[A-Za-z0-9-]`, 36 characters. */
  next(): string;
}

/** `setTimeout` fires after 1 ms beyond this (nodejs/node#4541). */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep(delayMs, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const endMs = performance.now() + delayMs;
      let timer: NodeJS.Timeout;
      function wait(leftMs: number): void {
        const next = leftMs > LONGEST_TIMEOUT_MS ? () => wait(endMs - performance.now()) : done;
        timer = setTimeout(next, Math.min(leftMs, LONGEST_TIMEOUT_MS));
      }
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done);
      wait(delayMs);
    });
  },
};

export const systemIds: Ids = { next: () => randomUUID() };
