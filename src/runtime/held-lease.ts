/** The lease of a held run as its worker sees it: by the local monotonic clock, counted from before it was asked for. */
import type { Clock } from '../clock.ts';

/** A lease is not trusted for a call within this share of its end. */
const MARGIN = 0.1;
/** A run with calls under way looks at its inbox at least this often. */
const RENEW_AT_MOST_MS = 1_000;

export class HeldLease {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #askedMs: number;
  #renewAtMs: number;

  /** `askedMs`: monotonic time before the claim was sent. */
  constructor(clock: Clock, leaseMs: number, askedMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#askedMs = askedMs;
    this.#renewAtMs = this.#dueAfter(askedMs);
  }

  /** A commit or renewal that was sent at `askedMs` kept the lease. */
  renewed(askedMs: number): void {
    this.#askedMs = askedMs;
    this.#renewAtMs = this.#dueAfter(askedMs);
  }

  /** A renewal failed and is to be tried again after `delayMs`. */
  postpone(delayMs: number): void {
    this.#renewAtMs = this.#clock.monotonicMs() + delayMs;
  }

  /** Surely still ours, with a margin: only then may a call leave. */
  isAlive(): boolean {
    return this.#clock.monotonicMs() < this.#askedMs + this.#leaseMs * (1 - MARGIN);
  }

  renewInMs(): number {
    return this.#renewAtMs - this.#clock.monotonicMs();
  }

  #dueAfter(askedMs: number): number {
    return askedMs + Math.min(this.#leaseMs / 3, RENEW_AT_MOST_MS);
  }
}
