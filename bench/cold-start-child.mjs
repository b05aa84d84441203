/**
 * A process that dies in the middle of a step and, started again, goes on: `STORE_PATH DIST RUN_ID UNTIL_STEP`.
 * It works the run until its tool is called for a step that the record did not have yet and that is `UNTIL_STEP` or
 * later, says so on stdout and hangs until it is killed. Plain modules, and nothing that a service would not load.
 */
import { createAgent } from './agent.mjs';
import { loadPackage } from './package-under-test.mjs';

const [path, dist, runId, until] = process.argv.slice(2);
const pawl = await loadPackage(dist);
/** @type {import('./agent.mjs').Watch} */
const watch = {
  called: () => {},
  hangFrom: Number(until),
  hang: async (step) => {
    process.stdout.write(`${step}\n`);
    return new Promise(() => {});
  },
};
const runtime = pawl.createRuntime({
  agents: [createAgent(pawl, () => watch)],
  store: pawl.sqliteStore({ path }),
  leaseMs: 200,
});
if (Number(until) > 0) await runtime.start('bench', { runId, input: { steps: 1_000_000 } });
runtime.work({ concurrency: 1 });
