/** The lines of PERFORMANCE.md that the embedded store has to reach, beside what was measured. */

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {string} target
 * @property {number | null} measured
 * @property {boolean | null} isReached Null: not measured this time.
 */

/** @param {import('./main.mjs').Measured} measured @returns {Target[]} */
export function judge({ pawl, bytes, growth, claims, coldStart, leases }) {
  const disk = (/** @type {string} */ mode) =>
    pawl.find((row) => row.store === 'sqlite' && row.durability === 'disk' && row.mode === mode);
  const atMost = (name, limit, value, unit = '') => target(name, `≤ ${limit}${unit}`, value, (one) => one <= limit);
  const atLeast = (name, limit, value) => target(name, `≥ ${limit}`, value, (one) => one >= limit);
  const fixed = growth.find((row) => !row.grows && row.steps >= 10_000);
  const growing = growth.find((row) => row.grows);
  return [
    atLeast('SQLite FULL, one run, of the single floor', 0.65, disk('sequential')?.ratioToFloor),
    atLeast('SQLite FULL, 64 runs, of the group-commit floor', 0.45, disk('concurrent')?.ratioToFloor),
    // A claim and the first attempt are a write each per run of 20 steps.
    atMost('writes per step, claims included', 1.15, disk('sequential')?.writesPerStep),
    atMost('bytes per step, 2 KB of context', 600, bytes?.fixed),
    atMost('bytes per step, context growing by 300 B a step', 1126, bytes?.growing),
    atMost('step 10,000 / step 10, fixed context', 1.1, fixed?.growth),
    atMost('step 500 / step 10, growing context', 1.3, growing?.growth),
    atMost(`claim at step ${claims?.lateStep ?? '10,000'} / at step ${claims?.earlyStep ?? 10}`, 1.1, claims?.ratio),
    ...['small', 'large'].map((name) => {
      const store = coldStart?.stores.find((one) => one.name === name);
      return atMost(`cold start over bare Node, ${name} store`, 100, store?.overBareMs, ' ms');
    }),
    atMost('memory per leased run beyond its context', 20 * 1024, leases?.bytesPerRun, ' B'),
  ];
}

/**
 * @param {string} name @param {string} text @param {number | null | undefined} measured
 * @param {(value: number) => boolean} isReached
 * @returns {Target}
 */
function target(name, text, measured, isReached) {
  const value = measured ?? null;
  return { name, target: text, measured: value, isReached: value === null ? null : isReached(value) };
}
