/** `pawl send`: one event to one run, and its verdict. */
import type { Command, Invocation } from '../command.ts';
import { readJson, usage } from '../flags.ts';
import { withRuntime } from '../open-runtime.ts';
import { answerVerdict, waitMsOf, WAIT_OPTION } from '../render-verdict.ts';

export const sendCommand: Command = {
  name: 'send',
  group: 'Act',
  summary: 'send an event to a run and print the verdict',
  arguments: [
    { name: 'RUN', help: 'the run’s id' },
    { name: 'EVENT', help: 'the event’s type' },
    { name: 'JSON', help: 'its payload, an object; @FILE reads a file, @- standard input; default {}', optional: true },
  ],
  options: {
    'event-id': { value: 'ID', help: 'accepted at most once; repeat the command with the same id after a lost answer' },
    'expect-sequence': { value: 'N', help: 'refused stale_sequence unless the run is at this sequence' },
    by: { value: 'WHO', help: 'who sends it' },
    'wait-ms': WAIT_OPTION,
  },
  about: [
    'The event is stored before this returns; the verdict says what became of it: applied, refused, deferred, dropped, duplicate, or accepted when no worker has got to it within --wait-ms.',
    'A refusal names its reason and the events that the run takes now, and exits 4; every other verdict exits 0.',
  ],
  examples: [
    `pawl send refund-1042 CANCEL '{"by":"ann"}' --by ann`,
    `pawl send refund-1042 HOLD '{"by":"ann","why":"call first"}' --event-id hold-1 --expect-sequence 1`,
  ],
  run: send,
};

function send(invocation: Invocation): Promise<number> {
  const { flags, io } = invocation;
  const [runId = '', type = '', json] = invocation.arguments;
  const payload = json === undefined ? {} : readJson('The payload', json, io);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    throw usage(`The payload of ${type} is no JSON object: ${JSON.stringify(payload)?.slice(0, 60)}`);
  }
  if (Object.hasOwn(payload, 'type')) throw usage(`The payload holds 'type'; the type is given as EVENT: ${type}.`);
  const expectedSequence = flags.whole('expect-sequence', 0, Number.MAX_SAFE_INTEGER);
  const eventId = flags.text('event-id');
  const by = flags.text('by');
  const options = {
    waitMs: waitMsOf(flags),
    ...(expectedSequence === undefined ? {} : { expectedSequence }),
    ...(eventId === undefined ? {} : { eventId }),
    ...(by === undefined ? {} : { by }),
  };
  return withRuntime(invocation, { agents: 'required', create: false }, async ({ pawl }) =>
    answerVerdict(invocation, await pawl.send(runId, { ...payload, type }, options)),
  );
}
