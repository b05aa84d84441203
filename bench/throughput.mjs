/** Steps per second of the work against the floor: slices of both in turns, floor first and last, ratios as medians. */
import { Floor, GROUP } from './floor-sqlite.mjs';
import { mean, median, percentile } from './statistics.mjs';
import { Workplace } from './work.mjs';

/**
 * @typedef {object} Case
 * @property {'sqlite' | 'memory'} store
 * @property {'disk' | 'process'} durability
 * @property {'sequential' | 'concurrent'} mode
 * @property {string} floor
 * @property {number} stepsPerSecond
 * @property {number} p50Us
 * @property {number} p99Us
 * @property {number} ratioToFloor
 * @property {[number, number]} ratioRange The lowest and the highest of the rounds.
 * @property {number} writesPerStep Calls of the store that write: 1, and a claim and a first commit per run.
 * @property {number} cpuUsPerStep Of the whole process, all threads.
 */

/**
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ store: 'sqlite' | 'memory', durability: 'disk' | 'process' }} what
 * @param {import('./options.mjs').Options} options
 * @returns {Promise<{ floor: { name: string, stepsPerSecond: number, p50Us: number, p99Us: number, cpuUsPerStep: number }[], pawl: Case[] }>}
 */
export async function measureThroughput(pawl, { store, durability }, options) {
  const { runs, steps, rounds, folder } = options;
  const floor = new Floor(durability === 'disk' ? 'FULL' : 'NORMAL', folder);
  const workplace = new Workplace(pawl, { kind: store, durability, folder });
  const cases = /** @type {const} */ ([
    {
      mode: 'sequential',
      lay: async () => floor.single(runs, steps),
      work: () => workplace.slice({ runs, steps, concurrency: 1 }),
    },
    {
      mode: 'concurrent',
      lay: () => floor.group(GROUP, steps),
      work: () => workplace.slice({ runs: GROUP, steps, concurrency: GROUP }),
    },
  ]);
  try {
    if (rounds > 1) await warmUp(workplace, steps);
    const empty = floor.empty(runs * steps);
    const floors = [summarize(empty.name, [empty])];
    const rows = [];
    for (const { mode, lay, work } of cases) {
      /** @type {import('./floor-sqlite.mjs').FloorSlice[]} */
      const laid = [await lay()];
      const worked = [];
      for (let round = 0; round < rounds; round++) {
        worked.push(await work());
        laid.push(await lay());
      }
      floors.push(summarize(laid[0].name, laid));
      const ratios = worked.map(
        (slice, round) => slice.stepsPerSecond / mean([laid[round].stepsPerSecond, laid[round + 1].stepsPerSecond]),
      );
      rows.push({
        store,
        durability,
        mode,
        ...summarize(laid[0].name, worked),
        name: undefined,
        floor: laid[0].name,
        ratioToFloor: median(ratios),
        ratioRange: [Math.min(...ratios), Math.max(...ratios)],
        writesPerStep: mean(worked.map((slice) => slice.writes / slice.steps)),
      });
    }
    return { floor: floors, pawl: rows };
  } finally {
    floor.close();
    await workplace.close();
  }
}

/** The engine compiles what it has seen often: a step is measured as a worker that has been up for a while does it. */
async function warmUp(workplace, steps) {
  for (let slice = 0; slice < 4; slice++) await workplace.slice({ runs: GROUP, steps, concurrency: GROUP });
}

/** @param {string} name @param {{ stepsPerSecond: number, stepUs: number[], cpuUs: number }[]} slices */
function summarize(name, slices) {
  const stepUs = slices.flatMap((slice) => slice.stepUs);
  return {
    name,
    stepsPerSecond: median(slices.map((slice) => slice.stepsPerSecond)),
    p50Us: percentile(stepUs, 0.5),
    p99Us: percentile(stepUs, 0.99),
    cpuUsPerStep: median(slices.map((slice) => slice.cpuUs)),
  };
}
