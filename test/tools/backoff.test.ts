import { assert, double, integer, nat, property, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs } from '../../src/tools/backoff.ts';

const retries = tuple(nat(86_400_000), nat(86_400_000)).map(([a, b]) => ({
  minDelayMs: Math.min(a, b),
  maxDelayMs: Math.max(a, b),
}));
const randoms = double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

test('a delay is a whole number of ms from minDelayMs to maxDelayMs, for any attempt', () => {
  assert(
    property(retries, integer({ min: 1, max: 100_000 }), randoms, (retry, attempt, random) => {
      const delayMs = backoffMs(retry, attempt, random);
      expect(Number.isSafeInteger(delayMs)).toBe(true);
      expect(delayMs).toBeGreaterThanOrEqual(retry.minDelayMs);
      expect(delayMs).toBeLessThanOrEqual(retry.maxDelayMs);
    }),
  );
});

test('with the same chance a later attempt never waits shorter', () => {
  assert(
    property(retries, integer({ min: 1, max: 100 }), randoms, (retry, attempt, random) => {
      expect(backoffMs(retry, attempt + 1, random)).toBeGreaterThanOrEqual(backoffMs(retry, attempt, random));
    }),
  );
});

test('it doubles, spreads over half of its ceiling and stops at the maximum', () => {
  const retry = { minDelayMs: 200, maxDelayMs: 30_000 };
  const almostOne = 1 - Number.EPSILON;
  expect([1, 2, 3, 4, 9].map((attempt) => backoffMs(retry, attempt, 0))).toEqual([200, 200, 400, 800, 15_000]);
  expect([1, 2, 3, 4, 9].map((attempt) => backoffMs(retry, attempt, almostOne))).toEqual([200, 399, 799, 1599, 29_999]);
});
