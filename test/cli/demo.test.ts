/** How `pawl demo` reads its flags; the demo itself is tested with the example. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { runDemo } from '../../examples/refund/demo.ts';
import { demoCommand, demoOptions, type DemoOptions, type RunDemo } from '../../src/cli/commands/demo.ts';
import type { Io } from '../../src/cli/io.ts';
import { parseCommandLine } from '../../src/cli/parse-command-line.ts';
import { documentOf, pawl } from './command-line.ts';

function optionsOf(line: string, cwd = '/project'): DemoOptions {
  const { flags } = parseCommandLine(demoCommand, line === '' ? [] : line.split(' '));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return demoOptions(flags, { cwd } as Io, flags.is('json'));
}

test('the defaults are those of the contract', () => {
  expect(optionsOf('')).toEqual({
    kill: { kind: 'every', everyMs: 500 },
    misbehave: 'mix',
    dedupe: true,
    reconcile: true,
    rowsPerSecond: 20,
    store: expect.stringMatching(/^sqlite:\/project\/\.pawl\/demo-\d+\.db$/),
    json: false,
  });
});

test('every flag arrives', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'rows.csv'), '');
  const line =
    '--agent refund --input rows.csv --rows 12 --kill-at B4 --kills 3 --misbehave late --dedupe off --without reconcile --rate 2.5 --approve auto --seed 7 --store sqlite:x.db --json';
  expect(optionsOf(line, folder)).toEqual({
    input: join(folder, 'rows.csv'),
    rows: 12,
    kill: { kind: 'at', point: 'B4', kills: 3 },
    misbehave: 'late',
    dedupe: false,
    reconcile: false,
    rowsPerSecond: 2.5,
    seed: 7,
    store: `sqlite:${join(folder, 'x.db')}`,
    json: true,
  });
});

test('the three ways to kill or not', () => {
  expect(optionsOf('--kill-at B8').kill).toEqual({ kind: 'at', point: 'B8', kills: 10 });
  expect(optionsOf('--kill-every 300').kill).toEqual({ kind: 'every', everyMs: 300 });
  expect(optionsOf('--no-kill').kill).toEqual({ kind: 'none' });
});

test('what is passed is what the example takes', () => {
  const accepts = (demo: RunDemo): RunDemo => demo;
  const typeChecks = (demo: typeof runDemo): RunDemo => accepts(demo);
  expect(typeChecks).toBeTypeOf('function');
});

test('without the built example it is DEMO_NOT_PACKAGED, exit 3', async () => {
  const said = await pawl(['demo', '--json']);
  expect([said.code, documentOf(said)]).toMatchObject([3, { error: { code: 'DEMO_NOT_PACKAGED' } }]);
});
