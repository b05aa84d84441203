/** The executable as it is built, in processes of its own: what only a real process, a real config and a pipe can show. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'tsdown';
import { afterAll, expect, test } from 'vitest';
import { failure } from './contract.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache');

/** Under the repository, so that its packages are found from there. */
mkdirSync(CACHE, { recursive: true });
const PACKAGE = mkdtempSync(join(CACHE, 'pawl-cli-'));
const MAIN = join(PACKAGE, 'dist/cli/main.js');
afterAll(() => rmSync(PACKAGE, { recursive: true, force: true }));
await build({
  config: false,
  cwd: ROOT,
  entry: { index: 'src/index.ts', 'cli/main': 'src/cli/main.ts' },
  outDir: join(PACKAGE, 'dist'),
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  dts: false,
  logLevel: 'error',
  deps: { onlyBundle: false },
});
writeFileSync(join(PACKAGE, 'package.json'), '{ "name": "pawl", "version": "9.8.7", "type": "module" }');

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

function start(argv: string[], cwd: string) {
  const child = spawn(process.execPath, [MAIN, ...argv], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended: Ended = { code: null, out: '', err: '' };
  child.stdout.on('data', (bytes: Buffer) => (ended.out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (ended.err += bytes.toString()));
  const done = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ ...ended, code }));
  });
  return { child, done, ended };
}

const pawl = (argv: string[], cwd: string): Promise<Ended> => start(argv, cwd).done;

/** A project in the repository's cache whose config imports the package that was built. */
function newFolder(files: Record<string, string>): string {
  const folder = mkdtempSync(join(PACKAGE, 'project-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** TypeScript that plain Node 20 cannot read. Its assign needs the clock of the step, so the package must be there once. */
const TYPESCRIPT_CONFIG = `
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { defineAgent, defineEvents, now, tool, type EventsOf } from '../dist/index.js';

const events = defineEvents({ GO: z.object({}) });
const greet = tool({
  name: 'greet', version: '1', effect: 'write', idempotent: true, timeoutMs: 1000,
  input: z.object({ name: z.string() }), output: z.object({ said: z.string() }),
  execute: async ({ input }) => ({ said: 'hello ' + input.name }),
});
const machine = setup({
  types: {} as { context: { at: number }; input: { name: string }; events: EventsOf<typeof events> },
  actors: { greet },
}).createMachine({
  id: 'greeter',
  context: { at: 0 },
  initial: 'idle',
  states: {
    idle: { on: { GO: { target: 'greeting', actions: assign({ at: () => now() }) } } },
    greeting: { invoke: { src: 'greet', input: { name: 'ann' }, onDone: 'done' } },
    done: { type: 'final' },
  },
});
enum Unused { A }
export default {
  agents: [defineAgent({ name: 'greeter', version: 1 as number & Unused, machine, events, input: z.object({ name: z.string() }) })],
  sweepMs: 20,
};
`;

test('a TypeScript config, a worker that drains at SIGTERM, and looking without the config', async () => {
  const folder = newFolder({ 'pawl.config.ts': TYPESCRIPT_CONFIG });
  const started = await pawl(['start', 'greeter', '--id', 'g1', '--input', '{"name":"ann"}'], folder);
  expect(started).toMatchObject({ code: 0, out: expect.stringContaining('idle') });

  const worker = start(['work'], folder);
  const sent = await pawl(['send', 'g1', 'GO', '--json'], folder);
  expect([sent.code, JSON.parse(sent.out)]).toMatchObject([0, { verdict: 'applied' }]);
  const followed = await pawl(['history', 'g1', '--follow', '--json'], folder);
  expect(JSON.parse(followed.out.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ kind: 'finished' });
  expect(await pawl(['verify', '--all'], folder)).toMatchObject({ code: 0 });
  worker.child.kill('SIGTERM');
  const ended = await worker.done;
  expect([ended.code, ended.out, ended.err]).toEqual([0, '', expect.stringMatching(/working.*draining.*drained/s)]);

  const elsewhere = mkdtempSync(join(tmpdir(), 'pawl-cli-'));
  afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));
  const store = `sqlite:${join(folder, '.pawl/pawl.db')}`;
  const shown = await pawl(['show', 'g1', '--json', '--store', store], elsewhere);
  expect([shown.code, shown.err, JSON.parse(shown.out)]).toMatchObject([0, '', { status: 'done', runId: 'g1' }]);
  expect(await pawl(['explain', 'g1', '--store', store], elsewhere)).toMatchObject({ code: 0, err: '' });
});

test('a config that leaves a handle open does not keep the command from ending', async () => {
  const folder = newFolder({
    'pawl.config.mjs': 'setInterval(() => {}, 1000); export default { agents: [] };',
  });
  const { code, out } = await pawl(['verify', '--all', '--json'], folder);
  expect([code, failure.parse(JSON.parse(out)).error.code]).toEqual([2, 'CONFIG_INVALID']);
});

test('the version is the package’s, and the demo is not in the package', async () => {
  const folder = newFolder({});
  expect(await pawl(['--version'], folder)).toEqual({ code: 0, out: '9.8.7\n', err: '' });
  expect(await pawl(['demo', '--json'], folder)).toMatchObject({ code: 3, out: expect.stringContaining('npm ci') });
});

test('a reader that goes away ends it quietly', async () => {
  const folder = newFolder({});
  const help = start(['--help'], folder);
  help.child.stdout.destroy();
  const { code, err } = await help.done;
  expect({ code, err }).toEqual({ code: 0, err: '' });
});
