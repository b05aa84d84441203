/** How long to wait before the next attempt or the next question. */
import type { RetrySpec } from './tool.ts';

/**
 * Exponential back-off with equal jitter: half of `min(maxDelayMs, minDelayMs × 2^(attempt-1))` plus a random part of the
 * other half, never less than `minDelayMs`. Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). Full jitter spreads more, but may ask
 * again at once; here a wait also gives a late effect time to arrive.
 *
 * @param attempt from 1: how many attempts have ended
 * @param random in [0, 1)
 * @returns whole milliseconds, from `minDelayMs` to `maxDelayMs`
 */
export function backoffMs(
  retry: Pick<RetrySpec, 'minDelayMs' | 'maxDelayMs'>,
  attempt: number,
  random: number,
): number {
  // 2^53 exceeds every allowed delay; a larger exponent would only make Infinity of it (and NaN of 0 × Infinity).
  const ceilingMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(Math.max(attempt - 1, 0), 53));
  return Math.max(retry.minDelayMs, Math.floor(ceilingMs / 2 + (ceilingMs / 2) * random));
}
