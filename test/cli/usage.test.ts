/** What does not fit is refused before anything happens, with the code, the fix and exit 2. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS_TO_COME } from '../../src/cli/commands.ts';
import { chargeTool, threeStepAgent } from '../runtime/agents.ts';
import { Provider } from '../runtime/provider.ts';
import { pawl } from './command-line.ts';
import { failure } from './contract.ts';
import { newProject } from './project.ts';

/** Command line → what the message has to say. */
const WRONG: [string, string[]][] = [
  ['frobnicate', ["'frobnicate'", 'explain']],
  ['--quiet', ['command']],
  ['ls --nope', ['--nope', '--status']],
  ['ls --status', ['--status']],
  ['ls --status open', ["'open'", 'needs_human']],
  ['ls --limit 0', ["'0'", '1 to 1000']],
  ['ls --limit 1e3', ["'1e3'", '1 to 1000']],
  ['ls --limit=-1', ["'-1'"]],
  ['ls --label novalue', ["'novalue'", 'KEY=VALUE']],
  ['ls extra', ["'extra'", 'pawl ls']],
  ['ls --json=yes', ['--json']],
  ['show', ['RUN', 'pawl show RUN']],
  ['show a b', ["'b'"]],
  ['history r1 --from x', ["'x'"]],
  ['start', ['AGENT']],
  ['start threeStep --input {}', ['--id']],
  ['start threeStep --id r1', ['--input']],
  ['start threeStep --id r1 --input {', ['--input', 'JSON']],
  ['start threeStep --id r1 --input @missing.json', ['@missing.json']],
  ['start threeStep --id r1 --input {} --wait --timeout-ms soon', ["'soon'"]],
  ['send r1', ['EVENT']],
  ['send r1 GO [1]', ['object']],
  ['send r1 GO nonsense', ['JSON']],
  ['send r1 GO {"type":"X"}', ['type']],
  ['send r1 GO {} --expect-sequence two', ["'two'"]],
  ['send r1 GO {} --wait-ms -5', ['--wait-ms']],
  ['cancel r1 --by ann', ['--reason']],
  ['release r1 --reason x', ['--by']],
  ['resolve r1 op --by ann --evidence x', ['--as']],
  ['resolve r1 op --as maybe --by ann --evidence x', ["'maybe'", 'not_executed']],
  ['resolve r1 op --as succeeded --by ann --evidence x', ['--output']],
  ['resolve r1 op --as failed --output {} --by ann --evidence x', ['--output']],
  ['resolve r1 op --as failed --by ann', ['--evidence']],
  ['verify', ['--all']],
  ['verify r1 --all', ['--all']],
  ['work --concurrency 0', ["'0'", '1 to 10000']],
  ['work now', ["'now'"]],
  ['demo --rows none', ["'none'"]],
  ['demo --kill-at B9', ["'B9'", 'B0, B1']],
  ['demo --kill-every 1', ["'1'", '50']],
  ['demo --kill-every 300 --no-kill', ['--kill-every', '--no-kill']],
  ['demo --kill-at B4 --kill-every 300', ['--kill-at', '--kill-every']],
  ['demo --kills 3', ['--kills', '--kill-at']],
  ['demo --kill-at B4 --kills 0', ["'0'"]],
  ['demo --misbehave badly', ["'badly'", 'query-down']],
  ['demo --dedupe maybe', ["'maybe'", 'on, off']],
  ['demo --without brakes', ["'brakes'", 'reconcile']],
  ['demo --rate 0', ["'0'"]],
  ['demo --rate fast', ["'fast'"]],
  ['demo --seed -1', ['--seed']],
  ['demo --input missing.csv', ['missing.csv']],
  ['demo --agent research', ['research', 'not available yet']],
  ['demo --agent mailbox', ['mailbox', 'not available yet']],
  ['demo --agent other', ["'other'"]],
  ['demo --approve manual', ['manual', 'not available yet']],
];

describe.each(WRONG)('pawl %s', (line, needles) => {
  const argv = line.split(' ');

  test('is USAGE, exit 2, with a fix on stderr and nothing on stdout', async () => {
    const { code, out, err } = await pawl(argv);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^USAGE .*\nfix: See `pawl .*--help`/s);
    for (const needle of needles) expect(err).toContain(needle);
  });

  test('is one JSON document on stdout with --json', async () => {
    const { code, out, err } = await pawl(['--json', ...argv]);
    expect({ code, err }).toEqual({ code: 2, err: '' });
    expect(failure.parse(JSON.parse(out)).error.code).toBe('USAGE');
  });
});

test.each(COMMANDS_TO_COME)('pawl %s is not available yet', async (name) => {
  expect(await pawl([name, 'x'])).toMatchObject({ code: 2, err: expect.stringContaining('not available yet') });
});

test('garbage never ends in anything but a usage error or a missing store', async () => {
  const words = ['--', '-', '', '--store', '--json', '@', 'ls', 'show', '\u0000', '--=', '-x', 'r 1', '💥', '--help=1'];
  const odd: unknown[] = [];
  for (const first of words) {
    for (const second of words) {
      const { code } = await pawl([first, second]);
      if (![0, 2, 5].includes(code)) odd.push([first, second, code]);
    }
  }
  expect(odd).toEqual([]);
});

test('a run id that is none is exit 2, one that is not there exit 3', async () => {
  const project = newProject({ agents: [threeStepAgent({ charge: chargeTool(new Provider()) })] });
  await project.run(['start', 'threeStep', '--id', 'r1', '--input', '{"order":"o1","amount":1}']);
  for (const argv of [['show'], ['explain'], ['history'], ['verify'], ['send', 'GO'], ['cancel'], ['release']]) {
    const [command = '', ...rest] = argv;
    const decided = command === 'cancel' || command === 'release' ? ['--by', 'ann', '--reason', 'x'] : [];
    const bad = await project.json([command, 'r 1', ...rest, ...decided]);
    expect([command, bad.code, bad.document]).toMatchObject([command, 2, { error: { code: 'INVALID_ID' } }]);
    const missing = await project.json([command, 'r2', ...rest, ...decided]);
    expect([command, missing.code, missing.document]).toMatchObject([command, 3, { error: { code: 'RUN_NOT_FOUND' } }]);
  }
});

describe('a config', () => {
  const START = ['start', 'threeStep', '--id', 'r1', '--input', '{}', '--json'];
  const refused: [string, string, string, RegExp][] = [
    ['that does not parse', 'export default {', 'CONFIG_INVALID', /could not be loaded/],
    ['that throws', 'throw new Error("no database today");', 'CONFIG_INVALID', /no database today/],
    ['that imports what is not there', 'import "nowhere-to-be-found";', 'CONFIG_INVALID', /nowhere-to-be-found/],
    ['without a default export', 'export const agents = [];', 'CONFIG_INVALID', /default export/],
    ['without agents', 'export default { agents: [] };', 'CONFIG_INVALID', /agents/],
    ['with something else as agents', 'export default { agents: [{}] };', 'CONFIG_INVALID', /agents\[0\].*defineAgent/],
    ['with an unknown key', 'export default { agent: [] };', 'CONFIG_INVALID', /unknown agent/],
    [
      'with a store that is none',
      'export default { ...globalThis.pawlTestConfigs.get(import.meta.dirname ?? ""), agents: [{ name: "a", durable: 1, structure: "s" }], store: 7 };',
      'CONFIG_INVALID',
      /store/,
    ],
  ];

  test.each(refused)('%s is refused with exit 2', async (_what, text, code, message) => {
    const { folder, run } = newProject();
    writeFileSync(join(folder, 'pawl.config.mjs'), text);
    const said = await run(START);
    const { error } = failure.parse(JSON.parse(said.out));
    expect({ exit: said.code, code: error.code }).toEqual({ exit: 2, code });
    expect(error.message).toMatch(message);
    expect(existsSync(join(folder, '.pawl'))).toBe(false);
  });

  test('that is missing is CONFIG_NOT_FOUND for commands that need agents', async () => {
    const { run } = newProject();
    for (const argv of [START, ['work', '--json'], ['verify', '--all', '--json'], ['export', '--json']]) {
      const said = await run(argv);
      expect([said.code, failure.parse(JSON.parse(said.out)).error.code]).toEqual([2, 'CONFIG_NOT_FOUND']);
    }
    const named = await run(['ls', '--config', 'other.config.js', '--json']);
    expect([named.code, named.out]).toEqual([2, expect.stringContaining('other.config.js')]);
  });
});

describe('a store', () => {
  test('that no file holds is an error of its own for whoever looks, and none is made', async () => {
    const { folder, run } = newProject({ agents: [threeStepAgent({ charge: chargeTool(new Provider()) })] });
    for (const argv of [['ls'], ['show', 'r1'], ['explain', 'r1'], ['history', 'r1'], ['verify', '--all']]) {
      const said = await run([...argv, '--json']);
      expect([argv, said.code]).toEqual([argv, 5]);
      expect(failure.parse(JSON.parse(said.out)).error.code).toBe('STORE_UNREACHABLE');
    }
    expect(existsSync(join(folder, '.pawl'))).toBe(false);
  });

  test('with a URL of no known kind is STORE_URL_INVALID, a file that is no database STORE_CORRUPT', async () => {
    const { folder, json } = newProject();
    expect(await json(['ls', '--store', 'mysql://x'])).toMatchObject({
      code: 2,
      document: { error: { code: 'STORE_URL_INVALID' } },
    });
    mkdirSync(join(folder, '.pawl'));
    writeFileSync(join(folder, '.pawl', 'pawl.db'), 'this is no database, and long enough to be looked at closely');
    expect(await json(['ls'])).toMatchObject({ code: 5, document: { error: { code: 'STORE_CORRUPT' } } });
  });
});
