/** Carries out one request of a misbehaving server: whether, when and with what answer its effect happens. */
import { setTimeout as sleep } from 'node:timers/promises';
import { chance, type Conduct } from './conduct.ts';
import type { ServerTimings } from './timings.ts';

/** One request, in the words of the server that received it. Each function may be called once. */
export interface Deed {
  /** The order that the effect is counted for. */
  orderId: string;
  conduct: Conduct;
  /** Waited before anything is done; the caller means to be killed meanwhile. */
  holdMs: number;
  /** Resolves when the caller's socket is closed. */
  closed: Promise<void>;
  /** Does it; the effect is on disk when this returns. */
  effect(): void;
  wrongEffect(): void;
  refuse(): void;
  answer(): void;
  fail(): void;
  reset(): void;
}

/** Resolves when it is settled whether the effect happens: what a duplicate of the request waits for. */
export async function perform(deed: Deed, seed: number, timings: ServerTimings): Promise<void> {
  if (deed.holdMs > 0 && (await isClosedWithin(deed.closed, deed.holdMs))) return performOrphan(deed, seed, timings);
  switch (deed.conduct) {
    case 'behave':
      deed.effect();
      return deed.answer();
    case 'refuse':
      return deed.refuse();
    case 'accept-timeout':
    case 'query-down':
      return deed.effect();
    case 'accept-reset':
      deed.effect();
      return deed.reset();
    case 'slow':
      await sleep(between(timings.slowMs / 3, timings.slowMs, chance(seed, 'slow', deed.orderId)));
      deed.effect();
      return deed.answer();
    case 'late':
      await isClosedWithin(deed.closed, timings.callerTimeoutMs);
      return performLate(deed, seed, timings);
    case 'error-500':
      return deed.fail();
    case 'wrong-amount':
      deed.wrongEffect();
      return deed.answer();
  }
}

/** The caller died before the effect: half of the orders never get it, the others get it with nobody listening. */
async function performOrphan(deed: Deed, seed: number, timings: ServerTimings): Promise<void> {
  if (deed.conduct === 'refuse' || chance(seed, 'orphan', deed.orderId) < 0.5) return;
  await performLate(deed, seed, timings);
}

async function performLate(deed: Deed, seed: number, timings: ServerTimings): Promise<void> {
  await sleep(between(timings.lateMs / 6, timings.lateMs, chance(seed, 'late', deed.orderId)));
  deed.effect();
}

async function isClosedWithin(closed: Promise<void>, delayMs: number): Promise<boolean> {
  const timeout = new AbortController();
  const isClosed = await Promise.race([
    closed.then(() => true),
    sleep(delayMs, false, { signal: timeout.signal }).catch(() => false),
  ]);
  timeout.abort();
  return isClosed;
}

function between(low: number, high: number, share: number): number {
  return Math.round(low + (high - low) * share);
}
