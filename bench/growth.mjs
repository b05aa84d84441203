/** What a run costs when it has a history: time and bytes of its late steps, and of taking it up again. */
import Database from 'libsql';
import { mean, median } from './statistics.mjs';
import { intervalsUs, Workplace } from './work.mjs';

/** A full record is written every so many commits: a window holds one, wherever it lies. */
const WINDOW = 50;

/**
 * Mean step time in the last window of a run over that in its first one. Each position is the median over several
 * runs, so that a hiccup of the machine does not count and the write of a full record does.
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ store: 'sqlite' | 'memory', durability: 'disk' | 'process' }} what
 * @param {{ steps: number, grows: boolean, repeats: number, folder: string }} how
 */
export async function measureGrowth(pawl, { store, durability }, { steps, grows, repeats, folder }) {
  const workplace = new Workplace(pawl, { kind: store, durability, folder });
  try {
    // What is compiled while the first steps run would make them look slow.
    for (let warm = 0; warm < 2 && repeats > 1; warm++)
      await workplace.slice({ runs: 32, steps: 60, concurrency: 32, grows });
    const runs = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { callsMs } = await workplace.slice({ runs: 1, steps, concurrency: 1, grows });
      runs.push(...[...callsMs.values()].map(intervalsUs));
    }
    const positions = (runs[0] ?? []).map((_, index) => median(runs.map((times) => times[index])));
    const window = Math.min(WINDOW, Math.floor(positions.length / 2));
    const early = mean(positions.slice(0, window));
    const late = mean(positions.slice(-window));
    return { growth: late / early, earlyUs: early, lateUs: late };
  } finally {
    await workplace.close();
  }
}

/**
 * Bytes of the whole file per step, of several runs that have all made `steps` steps; nothing is subtracted.
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ steps: number, grows: boolean, folder: string }} how
 */
export async function measureBytes(pawl, { steps, grows, folder }) {
  const runs = 8;
  const workplace = new Workplace(pawl, { kind: 'sqlite', durability: 'process', folder });
  try {
    await workplace.slice({ runs, steps, concurrency: runs, grows });
    return workplace.sizeBytes(Database) / (runs * steps);
  } finally {
    await workplace.close();
  }
}

/**
 * The cost of a claim of a run that waits at an early and at a late step, in turns, medians.
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ early: number, late: number, folder: string }} how
 */
export async function measureClaims(pawl, { early, late, folder }) {
  const workplace = new Workplace(pawl, { kind: 'sqlite', durability: 'process', folder });
  try {
    const runtime = workplace.runtime({ called: () => {} });
    runtime.work({ concurrency: 2 });
    const runs = [early, late].map((pauseAt) => ({
      runId: `paused-${pauseAt}`,
      pauseAt,
      us: /** @type {number[]} */ ([]),
    }));
    for (const { runId, pauseAt } of runs) {
      await runtime.start('bench', { runId, input: { steps: pauseAt * 2, pauseAt } });
      await runtime.wait(runId, { until: (view) => view.state === 'paused', timeoutMs: 600_000 });
    }
    await runtime.close();
    for (let round = 0; round < 200; round++) {
      for (const { runId, us } of runs) {
        const beganMs = performance.now();
        const [claim] = await workplace.store.claim({
          workerId: 'bench',
          leaseMs: 10_000,
          limit: 1,
          agents: { bench: [1] },
          runIds: [runId],
        });
        us.push((performance.now() - beganMs) * 1000);
        if (!claim) throw new Error(`run ${runId} could not be claimed`);
        await workplace.store.release(claim.lease, { dueAtMs: null });
      }
    }
    const [earlyUs, lateUs] = runs.map(({ us }) => median(us));
    return { earlyStep: early, lateStep: late, earlyUs, lateUs, ratio: lateUs / earlyUs };
  } finally {
    await workplace.close();
  }
}
