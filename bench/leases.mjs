/** Memory of a worker that holds many runs whose calls are under way. */
import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { CONTEXT_BYTES } from './agent.mjs';
import { Workplace } from './work.mjs';

/**
 * Heap per leased run beyond its context.
 * @param {import('./pawl.d.ts').Pawl} pawl
 * @param {{ runs: number, folder: string }} how
 */
export async function measureLeases(pawl, { runs, folder }) {
  const workplace = new Workplace(pawl, { kind: 'sqlite', durability: 'process', folder });
  try {
    await workplace.slice({ runs: 64, steps: 20, concurrency: 64 });
    let calling = 0;
    const hang = (/** @type {number} */ _step, /** @type {AbortSignal} */ signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true }));
    let allCalled = () => {};
    const called = new Promise((resolve) => {
      allCalled = () => ++calling === runs && resolve(undefined);
    });
    const runtime = workplace.runtime({ called: () => allCalled(), hang });
    for (let index = 0; index < runs; index++) {
      await runtime.start('bench', { runId: `held-${index}`, input: { steps: 5 } });
    }
    const before = heapBytes();
    const worker = runtime.work({ concurrency: runs });
    await called;
    const held = heapBytes();
    await worker.stop({ graceMs: 0 });
    await runtime.close();
    return { runs, bytesPerRun: (held - before) / runs - CONTEXT_BYTES };
  } finally {
    await workplace.close();
  }
}

function heapBytes() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
