/** Builds the demo's programs as `npm run build` does, into a folder of this test's own: what runs is what is written. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'tsdown';
import { afterAll } from 'vitest';

type Demo = typeof import('../../examples/refund/demo.ts');

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PROGRAMS = ['demo', 'worker', 'payment-server', 'mail-server'];

export async function buildDemo(): Promise<Demo> {
  // Under the repository, so that its packages are found from there.
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const outDir = mkdtempSync(join(cache, 'pawl-demo-'));
  afterAll(() => rmSync(outDir, { recursive: true, force: true }));
  await build({
    config: false,
    cwd: ROOT,
    entry: Object.fromEntries(PROGRAMS.map((name) => [name, `examples/refund/${name}.ts`])),
    outDir,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    dts: false,
    logLevel: 'error',
    deps: { onlyBundle: false },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (await import(/* @vite-ignore */ pathToFileURL(join(outDir, 'demo.mjs')).href)) as Demo;
}
