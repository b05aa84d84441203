/** A clock that a test moves: years pass in milliseconds, in the order in which sleepers would wake. */
import type { Clock } from '../clock.ts';

interface Sleeper {
  wakeAtMs: number;
  order: number;
  wake(): void;
}

/** How many turns of the event loop whoever was woken gets before time moves on. */
const TURNS_PER_WAKE = 25;

export interface SimulatedClock extends Clock {
  /**
   * Moves time by `delayMs`, waking each sleeper at its own time and letting it work before the next one. What does
   * real I/O in between (files, sockets) is not waited for.
   */
  advance(delayMs: number): Promise<void>;
}

/** Starts at `startMs` (epoch ms); monotonic time starts at 0. Time stands still between calls of `advance`. */
export function simulatedClock(startMs: number): SimulatedClock {
  let elapsedMs = 0;
  let order = 0;
  const sleepers = new Set<Sleeper>();
  return {
    nowMs: () => startMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    sleep(delayMs, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: Sleeper = { wakeAtMs: elapsedMs + Math.max(0, delayMs), order: order++, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake);
      });
    },
    async advance(delayMs) {
      const untilMs = elapsedMs + delayMs;
      await turns();
      for (let next = earliest(sleepers, untilMs); next; next = earliest(sleepers, untilMs)) {
        elapsedMs = Math.max(elapsedMs, next.wakeAtMs);
        next.wake();
        await turns();
      }
      elapsedMs = untilMs;
      await turns();
    },
  };
}

function earliest(sleepers: ReadonlySet<Sleeper>, untilMs: number): Sleeper | null {
  let first: Sleeper | null = null;
  for (const sleeper of sleepers) {
    if (sleeper.wakeAtMs > untilMs) continue;
    if (
      !first ||
      sleeper.wakeAtMs < first.wakeAtMs ||
      (sleeper.wakeAtMs === first.wakeAtMs && sleeper.order < first.order)
    ) {
      first = sleeper;
    }
  }
  return first;
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS_PER_WAKE; turn++) await new Promise(setImmediate);
}
