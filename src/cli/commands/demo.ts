/** `pawl demo`: the main job, by the example that lies beside the command line in a clone. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PawlError } from '../../errors.ts';
import type { CrashPoint } from '../../runtime/crash-points.ts';
import type { Command, Invocation } from '../command.ts';
import { usage, type Flags } from '../flags.ts';
import type { Io } from '../io.ts';
import { absoluteUrl } from '../locate-store.ts';

const BOUNDARIES = ['B0', 'B1', 'B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B8'] as const satisfies CrashPoint[];
const MISBEHAVIOURS = [
  'none',
  'refuse',
  'accept-timeout',
  'accept-reset',
  'slow',
  'late',
  'error-500',
  'query-down',
  'wrong-amount',
  'mix',
] as const;

/** What the example's `runDemo` takes. */
export interface DemoOptions {
  input?: string;
  rows?: number;
  kill: { kind: 'none' } | { kind: 'every'; everyMs: number } | { kind: 'at'; point: CrashPoint; kills: number };
  misbehave: (typeof MISBEHAVIOURS)[number];
  dedupe: boolean;
  reconcile: boolean;
  rowsPerSecond: number;
  seed?: number;
  store: string;
  json: boolean;
}

export type RunDemo = (
  options: DemoOptions,
  io: { stdout: DemoStream; stderr: DemoStream },
) => Promise<{ exitCode: number }>;

interface DemoStream {
  write(text: string): void;
  isTTY: boolean;
}

export const demoCommand: Command = {
  name: 'demo',
  group: 'See it',
  summary: 'refunds in bulk by a worker that is killed again and again; nothing lost or paid twice',
  arguments: [],
  options: {
    agent: { value: 'refund', help: 'which demo; research and mailbox are not available yet' },
    input: { value: 'FILE.csv', help: 'vendor refunds; default: the 200 rows that ship' },
    rows: { value: 'N', help: 'only the first N rows' },
    'kill-at': { value: 'B0…B8', help: 'kill the worker at this boundary, each time in another run' },
    kills: { value: 'N', help: 'with --kill-at: in so many runs; default 10' },
    'kill-every': { value: 'MS', help: 'kill it so long after its first claim; default 500' },
    'no-kill': { help: 'do not kill it' },
    misbehave: { value: 'HOW', help: `how the servers fail: ${MISBEHAVIOURS.join(', ')}; default mix` },
    dedupe: { value: 'on|off', help: 'whether the servers know a repeated operation id; default on' },
    without: { value: 'reconcile', help: 'tools that cannot ask what happened: shows what that costs' },
    rate: { value: 'ROWS_PER_S', help: 'how fast rows come in; default 20' },
    approve: { value: 'auto', help: 'manual is not available yet: this agent asks for no approvals' },
    seed: { value: 'N', help: 'the same seed, the same misbehaviour; default by chance, printed' },
  },
  about: [
    'A payment server and a mail server run as processes of their own and misbehave; the worker is killed with SIGKILL and started again. At the end the servers’ own databases are asked how often each order was paid and each vendor told.',
    'Exits 1 when something is lost or doubled, 6 when a run needs a human, else 0. Its store is a new file in .pawl unless --store names one; look into it with `pawl ls --store URL`.',
  ],
  examples: [
    'pawl demo',
    'pawl demo --rows 40 --kill-at B4 --misbehave none',
    'pawl demo --without reconcile --dedupe off',
  ],
  run: demo,
};

async function demo(invocation: Invocation): Promise<number> {
  const { io, isJson, isQuiet, flags } = invocation;
  const options = demoOptions(flags, io, isJson);
  const runDemo = await loadDemo();
  const { exitCode } = await runDemo(options, {
    stdout: { write: (text) => io.out(text), isTTY: io.outIsTerminal },
    stderr: { write: (text) => (isQuiet ? undefined : io.err(text)), isTTY: io.errIsTerminal && !isQuiet },
  });
  return exitCode;
}

/** @throws USAGE naming the flag, what was given and what is allowed */
export function demoOptions(flags: Flags, io: Io, json: boolean): DemoOptions {
  const agent = flags.oneOf('agent', ['refund', 'research', 'mailbox']) ?? 'refund';
  if (agent !== 'refund') throw usage(`--agent ${agent} is not available yet; there is refund.`, { flag: 'agent' });
  if (flags.oneOf('approve', ['auto', 'manual']) === 'manual') {
    throw usage('--approve manual is not available yet; the refund agent asks for no approvals.', { flag: 'approve' });
  }
  const input = flags.text('input');
  if (input !== undefined && !existsSync(resolve(io.cwd, input))) {
    throw usage(`--input ${input} is not there; it takes a CSV file of vendor refunds.`, {
      flag: 'input',
      given: input,
    });
  }
  const rows = flags.whole('rows', 1, 100_000);
  const seed = flags.whole('seed', 0, 2 ** 32 - 1);
  flags.oneOf('without', ['reconcile']);
  return {
    kill: killOf(flags),
    misbehave: flags.oneOf('misbehave', MISBEHAVIOURS) ?? 'mix',
    dedupe: flags.oneOf('dedupe', ['on', 'off']) !== 'off',
    reconcile: flags.text('without') === undefined,
    rowsPerSecond: flags.number('rate', 0, 10_000) ?? 20,
    store: absoluteUrl(io, flags.text('store') ?? `sqlite:./.pawl/demo-${Date.now()}.db`),
    json,
    ...(input === undefined ? {} : { input: resolve(io.cwd, input) }),
    ...(rows === undefined ? {} : { rows }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function killOf(flags: Flags): DemoOptions['kill'] {
  const point = flags.oneOf('kill-at', BOUNDARIES);
  const everyMs = flags.whole('kill-every', 50, 600_000);
  const kills = flags.whole('kills', 1, 1_000);
  const given = [
    ...(point === undefined ? [] : ['--kill-at']),
    ...(everyMs === undefined ? [] : ['--kill-every']),
    ...(flags.is('no-kill') ? ['--no-kill'] : []),
  ];
  if (given.length > 1) throw usage(`${given.join(' and ')} were given; one of them is allowed.`, { given });
  if (kills !== undefined && point === undefined) throw usage('--kills goes with --kill-at only.', { flag: 'kills' });
  if (flags.is('no-kill')) return { kind: 'none' };
  if (point !== undefined) return { kind: 'at', point, kills: kills ?? 10 };
  return { kind: 'every', everyMs: everyMs ?? 500 };
}

/** The built example beside the built command line. @throws DEMO_NOT_PACKAGED */
async function loadDemo(): Promise<RunDemo> {
  const url = new URL('../examples/refund/demo.js', import.meta.url);
  if (!existsSync(fileURLToPath(url))) {
    throw new PawlError(
      'DEMO_NOT_PACKAGED',
      'The demo is not in the npm package. Clone the repository, run `npm ci`, then `npx pawl demo`.',
      { details: { file: fileURLToPath(url) } },
    );
  }
  const { runDemo } = (await import(url.href)) as { runDemo: RunDemo };
  return runDemo;
}
