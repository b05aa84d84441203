/** `pawl verify`: re-runs the pure steps of runs over their ledgers; it cannot call a tool. */
import { isPawlError } from '../../errors.ts';
import type { AgentDefinition } from '../../machines/define-agent.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { answer } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import { usage } from '../flags.ts';
import { withRuntime } from '../open-runtime.ts';
import type { Paint } from '../paint.ts';

interface Verified {
  runId: string;
  ok: boolean;
  sequence: number;
  divergedAt?: { sequence: number; what: string };
  /** Why it could not be verified: its agent is not in the config. */
  error?: { code: string; message: string };
}

export const verifyCommand: Command = {
  name: 'verify',
  group: 'Operate',
  summary: 're-run the pure steps of runs over their ledgers and compare every digest',
  arguments: [{ name: 'RUN', help: 'the runs’ ids; or --all', optional: true, many: true }],
  options: { all: { help: 'every run of the store' } },
  about: [
    'Calls no tool and writes nothing about the runs. Exits 1 when a run diverges, with the sequence and what differs, and when one cannot be verified because the config lacks its agent.',
  ],
  examples: ['pawl verify refund-1042', 'pawl verify --all --json'],
  run: verify,
};

function verify(invocation: Invocation): Promise<number> {
  const { flags, arguments: named } = invocation;
  if (flags.is('all') === named.length > 0) throw usage('verify takes either ids of runs or --all.');
  return withRuntime(invocation, { agents: 'required', create: false }, async ({ pawl }) => {
    const runs: Verified[] = [];
    for await (const runId of named.length > 0 ? named : allRuns(pawl)) runs.push(await verifyOne(pawl, runId));
    const document = { ok: runs.every(({ ok }) => ok), runs };
    answer(invocation, document, render);
    return document.ok ? 0 : 1;
  });
}

async function verifyOne(pawl: Runtime<AgentDefinition>, runId: string): Promise<Verified> {
  try {
    return await pawl.verify(runId);
  } catch (error) {
    // One run of another agent must not hide what is wrong with the others.
    if (!isPawlError(error, 'AGENT_UNKNOWN')) throw error;
    const { sequence } = await pawl.view(runId);
    return { runId, ok: false, sequence, error: { code: error.code, message: error.message } };
  }
}

async function* allRuns(pawl: Runtime<AgentDefinition>): AsyncGenerator<string> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof pawl.list>> = await pawl.list({
      limit: 1_000,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const { runId } of page.runs) yield runId;
    cursor = page.cursor;
  } while (cursor !== null);
}

function render({ runs }: { runs: Verified[] }, paint: Paint): string {
  const lines = runs.map(({ runId, ok, sequence, divergedAt, error }) => {
    if (ok) return `${paint('green', 'ok')}        ${runId}  to sequence ${sequence}`;
    if (divergedAt) {
      return `${paint('red', 'diverged')}  ${runId}  at sequence ${divergedAt.sequence}: ${divergedAt.what}`;
    }
    return `${paint('red', 'unknown')}   ${runId}  ${error?.message ?? ''}`;
  });
  const bad = runs.filter(({ ok }) => !ok).length;
  const sum = runs.length === 0 ? 'No runs.' : `${runs.length - bad} of ${runs.length} ok.`;
  return `${[...lines, sum].join('\n')}\n`;
}
