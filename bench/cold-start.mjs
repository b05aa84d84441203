/** How long a new process takes to the first continued step of a run whose worker was killed, over a bare Node. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { median } from './statistics.mjs';
import { Workplace } from './work.mjs';

const CHILD = fileURLToPath(new URL('./cold-start-child.mjs', import.meta.url));
/** The child's lease, and a margin. */
const LEASE_IS_OVER_MS = 250;

/**
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ dist: string, small: number, large: number, history: number, rounds: number, folder: string }} how
 *   `small` and `large`: finished runs of 20 steps in the store beside the one that waits.
 */
export async function measureColdStart(pawl, { dist, small, large, history, rounds, folder }) {
  const stores = [];
  for (const { name, finished, step } of [
    { name: 'small', finished: small, step: 10 },
    { name: 'large', finished: large, step: history },
  ]) {
    const workplace = new Workplace(pawl, { kind: 'sqlite', durability: 'process', folder });
    if (finished > 0) await workplace.slice({ runs: finished, steps: 20, concurrency: 64 });
    await workplace.store.close();
    await stepsAfter(workplace.path, dist, step);
    stores.push({ name, finished, step, workplace, ms: /** @type {number[]} */ ([]) });
  }
  const bareMs = [];
  for (let round = 0; round < rounds; round++) {
    bareMs.push(await firstLineMs(['-e', 'process.stdout.write("0\\n"); setInterval(() => {}, 1000)']));
    for (const { workplace, ms } of stores) {
      await sleep(LEASE_IS_OVER_MS);
      ms.push(await stepsAfter(workplace.path, dist, 0));
    }
  }
  for (const { workplace } of stores) await workplace.close();
  const bare = median(bareMs);
  return {
    bareMs: bare,
    stores: stores.map(({ name, finished, step, ms }) => ({ name, finished, step, overBareMs: median(ms) - bare })),
  };
}

/** @param {string} path @param {string} dist @param {number} until */
function stepsAfter(path, dist, until) {
  return firstLineMs([CHILD, path, dist, 'crashed', String(until)]);
}

/** From before the spawn to the first line; the process is then killed. @param {string[]} args @returns {Promise<number>} */
async function firstLineMs(args) {
  const beganMs = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const line = await Promise.race([once(child.stdout, 'data'), exited.then(() => null)]);
  const elapsedMs = performance.now() - beganMs;
  if (line === null) throw new Error(`the process ended without a word: node ${args.join(' ')}`);
  child.kill('SIGKILL');
  await exited;
  return elapsedMs;
}
