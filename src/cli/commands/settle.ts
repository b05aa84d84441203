/** `pawl cancel`, `pawl release` and `pawl resolve`: what a person decides about a run. */
import type { Argument, Command, Invocation, Options } from '../command.ts';
import { readJson, usage } from '../flags.ts';
import { withRuntime } from '../open-runtime.ts';
import { answerVerdict, waitMsOf, WAIT_OPTION } from '../render-verdict.ts';

const RUN: Argument = { name: 'RUN', help: 'the run’s id' };

const BY_REASON: Options = {
  by: { value: 'WHO', required: true, help: 'who decides it' },
  reason: { value: 'TEXT', required: true, help: 'why; kept in the ledger' },
  'event-id': { value: 'ID', help: 'accepted at most once; repeat the command with the same id after a lost answer' },
  'wait-ms': WAIT_OPTION,
};

export const cancelCommand: Command = {
  name: 'cancel',
  group: 'Act',
  summary: 'end a run; what was attempted is settled first',
  arguments: [RUN],
  options: BY_REASON,
  about: [
    'No attempt is begun any more; calls under way are aborted and settled; then the run is `cancelled`. A run whose machine is final refuses it (exit 4).',
  ],
  examples: [`pawl cancel refund-1042 --by ann --reason 'the customer changed their mind'`],
  run: (invocation) => command(invocation, 'cancel'),
};

export const releaseCommand: Command = {
  name: 'release',
  group: 'Act',
  summary: 'let a run that needs a human go on',
  arguments: [RUN],
  options: BY_REASON,
  about: [
    'What threw is reduced again and an unknown outcome is asked for again. An operation that cannot be asked about stays until `pawl resolve`. A run that was not stopped refuses it (exit 4).',
  ],
  examples: [`pawl release refund-1042 --by ann --reason 'guard corrected in 1.4.2'`],
  run: (invocation) => command(invocation, 'release'),
};

const OUTCOMES = ['succeeded', 'failed', 'not_executed'] as const;

export const resolveCommand: Command = {
  name: 'resolve',
  group: 'Act',
  summary: 'say how an unknown operation ended in the world',
  arguments: [RUN, { name: 'OPERATION', help: 'the operation’s id, as `pawl explain RUN` names it' }],
  options: {
    as: { value: OUTCOMES.join('|'), required: true, help: 'what became of it at the provider' },
    output: { value: 'JSON|@FILE', help: 'with --as succeeded: what the tool would have returned' },
    by: { value: 'WHO', required: true, help: 'who found out' },
    evidence: { value: 'TEXT', required: true, help: 'where it can be seen; kept in the ledger' },
    'wait-ms': WAIT_OPTION,
  },
  about: [
    'Look at the provider first: what is said here is believed. succeeded: the effect is there. failed: the provider refused it for good. not_executed: it never happened, so it is performed again if the run still wants it.',
    'An operation that has an outcome keeps it (exit 4); an unknown one is exit 3.',
  ],
  examples: [
    `pawl resolve refund-1042 OPERATION --as succeeded --output '{"refundId":"re_9"}' --by ann --evidence 'seen in the provider’s console'`,
    `pawl resolve refund-1042 OPERATION --as not_executed --by ann --evidence 'not in the settlement file of 3 May'`,
  ],
  run: resolve,
};

function command(invocation: Invocation, kind: 'cancel' | 'release'): Promise<number> {
  const { flags } = invocation;
  const [runId = ''] = invocation.arguments;
  const eventId = flags.text('event-id');
  const options = {
    by: flags.required('by'),
    reason: flags.required('reason'),
    waitMs: waitMsOf(flags),
    ...(eventId === undefined ? {} : { eventId }),
  };
  return withRuntime(invocation, { agents: 'optional', create: false }, async ({ pawl }) =>
    answerVerdict(invocation, await pawl[kind](runId, options)),
  );
}

function resolve(invocation: Invocation): Promise<number> {
  const { flags, io } = invocation;
  const [runId = '', operationId = ''] = invocation.arguments;
  const as = flags.oneOf('as', OUTCOMES) ?? 'failed';
  const given = flags.text('output');
  if (as === 'succeeded' && given === undefined) {
    throw usage('--as succeeded needs --output JSON: what the tool would have returned; the machine goes on with it.');
  }
  if (as !== 'succeeded' && given !== undefined) throw usage(`--output goes with --as succeeded only, not with ${as}.`);
  const output = given === undefined ? {} : { output: readJson('--output', given, io) };
  const options = { as, by: flags.required('by'), evidence: flags.required('evidence'), waitMs: waitMsOf(flags) };
  return withRuntime(invocation, { agents: 'required', create: false }, async ({ pawl }) =>
    answerVerdict(invocation, await pawl.resolve(runId, operationId, { ...options, ...output })),
  );
}
