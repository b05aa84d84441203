/** `pawl start`: the run is stored when this returns; with `--wait` it is worked here until it is final or idle. */
import { answer, notice } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import { readJson } from '../flags.ts';
import { withRuntime } from '../open-runtime.ts';
import { renderRun } from '../render-run.ts';
import { stderrLogger } from '../stderr-logger.ts';

/** Longest time that a timer of Node can count. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

export const startCommand: Command = {
  name: 'start',
  group: 'Act',
  summary: 'start a run; with --wait, work it here until it is final or idle',
  arguments: [{ name: 'AGENT', help: 'the name of an agent of the config; its newest version is taken' }],
  options: {
    id: {
      value: 'RUN',
      required: true,
      help: 'the run’s id; starting twice with one id and equal input gives one run',
    },
    input: {
      value: 'JSON|@FILE',
      required: true,
      help: 'what the agent’s input schema takes; @- reads standard input',
    },
    wait: { help: 'work the run in this process until it is final or idle' },
    'timeout-ms': { value: 'N', help: 'with --wait: give up waiting after this long; the run stays as it is' },
    tenant: { value: 'ID', help: 'whose run it is; default `default`' },
    by: { value: 'WHO', help: 'who starts it' },
    subject: { value: 'ID', help: 'whom it is about' },
    label: { value: 'K=V', multiple: true, help: 'a label for `pawl ls --label`' },
  },
  about: [
    'Stores a new run and prints it. Without --wait some `pawl work` has to work it. Repeating the command is safe: the same id with equal input gives the same run, with other input it is refused (exit 4).',
    'With --wait the exit code is 6 when the run needs a human.',
  ],
  examples: [
    'pawl start refund --id refund-1042 --input @refund-1042.json',
    `pawl start refund --id refund-1042 --input '{"orderId":"1042"}' --wait`,
  ],
  run: start,
};

function start(invocation: Invocation): Promise<number> {
  const { flags, io, isQuiet } = invocation;
  const input = readJson('--input', flags.required('input'), io);
  const timeoutMs = flags.whole('timeout-ms', 1, NO_TIMEOUT_MS) ?? NO_TIMEOUT_MS;
  const runId = flags.required('id');
  const [agent = ''] = invocation.arguments;
  const optional = { tenant: flags.text('tenant'), createdBy: flags.text('by'), subject: flags.text('subject') };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  const labels = flags.pairs('label');
  const logger = stderrLogger(io, isQuiet || !flags.is('wait'));
  return withRuntime(invocation, { agents: 'required', create: true, logger }, async ({ pawl }) => {
    let view = await pawl.start(agent, { runId, input, labels, ...given });
    if (flags.is('wait')) view = await pawl.drive(runId, { until: 'idle', timeoutMs });
    else notice(invocation, `Stored; \`pawl work\` works it, \`pawl show ${runId}\` shows it.`);
    answer(invocation, view, renderRun);
    return flags.is('wait') && view.status === 'needs_human' ? 6 : 0;
  });
}
