import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareWalk } from './compare.ts';
import { noFeatures, type Features } from './features.ts';
import { machineRecipe, walkRecipe } from './recipe.ts';

const LONG = process.env['PAWL_LONG'] === '1';
const WALKS = Number(process.env['PAWL_WALKS'] ?? (LONG ? 10_000 : 250));
const SEED = Number(process.env['PAWL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** Oddities of XState that are counted, not sought. */
const OBSERVED = ['impossible state', 'always at rest'];

test(
  `random machines step as XState does, warm and restored (${WALKS} walks, seed ${SEED})`,
  { timeout: LONG ? 1_800_000 : 60_000 },
  () => {
    const features = noFeatures();
    fc.assert(
      fc.property(machineRecipe, walkRecipe, (recipe, walk) => compareWalk(recipe, walk, features)),
      // Shrinking takes minutes: PAWL_SHRINK=1 with the seed of a failure.
      { seed: SEED, numRuns: WALKS, endOnFailure: process.env['PAWL_SHRINK'] !== '1' },
    );
    report(features);
    for (const [name, taken] of Object.entries(features)) {
      if (LONG && !OBSERVED.includes(name)) expect.soft(taken, name).toBeGreaterThanOrEqual(200);
    }
  },
);

function report(features: Features): void {
  const rows = Object.entries(features).map(([name, taken]) => `${String(taken).padStart(8)}  ${name}`);
  process.stderr.write(`equivalence: ${WALKS} walks, seed ${SEED}\n${rows.join('\n')}\n`);
}
