/** A clock that tests move by hand. */
export interface MovableClock {
  nowMs(): number;
  advance(ms: number): void;
}

export function movableClock(startMs = 1_700_000_000_000): MovableClock {
  let nowMs = startMs;
  return {
    nowMs: () => nowMs,
    advance(ms) {
      nowMs += ms;
    },
  };
}
