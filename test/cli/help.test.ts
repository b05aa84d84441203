/** What `pawl` says about itself is complete, fits 100 columns and is coloured on terminals only. */
import { describe, expect, test } from 'vitest';
import { COMMANDS, COMMANDS_TO_COME } from '../../src/cli/commands.ts';
import { pawl } from './command-line.ts';

/** Command → flags, as the contract's table has them. */
const CONTRACT: Record<string, string[]> = {
  demo: [
    'agent',
    'input',
    'rows',
    'kill-at',
    'kills',
    'kill-every',
    'no-kill',
    'misbehave',
    'dedupe',
    'without',
    'rate',
    'approve',
    'seed',
  ],
  start: ['id', 'input', 'wait'],
  work: ['concurrency'],
  send: ['event-id', 'expect-sequence', 'by', 'wait-ms'],
  cancel: ['by', 'reason'],
  resolve: ['as', 'output', 'by', 'evidence'],
  release: ['by', 'reason'],
  ls: ['status', 'agent', 'state', 'label', 'blocked', 'limit', 'cursor'],
  show: [],
  explain: [],
  history: ['follow'],
  verify: ['all'],
  export: ['check', 'out'],
};
const GLOBAL = ['config', 'store', 'json', 'quiet'];
const ESCAPE = '\u001b';

test('the commands are those of the contract', () => {
  expect(COMMANDS.map(({ name }) => name).toSorted()).toEqual(Object.keys(CONTRACT).toSorted());
});

test('pawl --help names every command that exists, none that is to come, and every global flag', async () => {
  const { code, out, err } = await pawl(['--help']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  for (const name of Object.keys(CONTRACT)) expect(out).toMatch(new RegExp(`^  ${name} {2,}\\w`, 'm'));
  for (const name of COMMANDS_TO_COME) expect(out).not.toMatch(new RegExp(`^  ${name} {2,}`, 'm'));
  for (const flag of GLOBAL) expect(out).toContain(`--${flag}`);
  expect(out).toMatch(/0 done .* 6 needs a human/s);
});

describe.each(Object.entries(CONTRACT))('pawl %s --help', (name, flags) => {
  test('names its arguments and every flag, has an example, and fits 100 columns', async () => {
    const { code, out } = await pawl([name, '--help']);
    const [command] = COMMANDS.filter((known) => known.name === name);
    expect(code).toBe(0);
    for (const flag of [...flags, ...GLOBAL]) expect(out).toMatch(new RegExp(`^  --${flag}\\b`, 'm'));
    for (const argument of command?.arguments ?? []) expect(out).toContain(argument.name);
    expect(out).toContain(`\n  pawl ${name}`);
    const lines = out.split('\n').filter((text) => !text.startsWith('  pawl '));
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  });

  test('pawl help COMMAND says the same', async () => {
    expect((await pawl(['help', name])).out).toBe((await pawl([name, '-h'])).out);
  });
});

test('no command at all is a usage error that shows the help on stderr', async () => {
  const { code, out, err } = await pawl([]);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain('pawl COMMAND');
});

test('pawl --version prints the version of the package', async () => {
  expect(await pawl(['--version'])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});

test('colour is for terminals, and not where NO_COLOR or TERM=dumb says no', async () => {
  const coloured = async (options: Parameters<typeof pawl>[1]) =>
    (await pawl(['--help'], options)).out.includes(ESCAPE);
  expect(await coloured({})).toBe(false);
  expect(await coloured({ isTerminal: true })).toBe(true);
  expect(await coloured({ isTerminal: true, env: { NO_COLOR: '1' } })).toBe(false);
  expect(await coloured({ isTerminal: true, env: { TERM: 'dumb' } })).toBe(false);
});
