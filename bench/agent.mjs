/**
 * The work: a machine that goes back and forth between two states, each of which invokes a write that answers at once.
 * The context has 2 KB of strict JSON, the event that each answer becomes 290 bytes. Every answer is one durable step.
 */
import { assign, setup } from 'xstate';
import { z } from 'zod';

/** Of the event `xstate.done.actor.…` as JSON. */
export const EVENT_BYTES = 290;
export const CONTEXT_BYTES = 2048;

/**
 * @typedef {object} WorkInput
 * @property {number} steps How many steps until it is done.
 * @property {number} [pauseAt] After this step it waits for GO instead.
 * @property {boolean} [grows] Appends each answer, 300 bytes, to its context.
 */

/**
 * @typedef {object} Watch What the tool calls; both are synchronous and cost next to nothing.
 * @property {(runId: string, step: number) => void} called
 * @property {(step: number, signal: AbortSignal) => Promise<never>} [hang] Instead of an answer, from step `hangFrom` on.
 * @property {number} [hangFrom] Default 0.
 */

/** @param {import('./pawl.d.ts').Pawl} pawl @param {() => Watch} watching */
export function createAgent(pawl, watching) {
  const act = pawl.tool({
    name: 'act',
    version: '1',
    effect: 'write',
    input: z.object({ step: z.int() }),
    output: z.object({ reference: z.string(), score: z.number(), note: z.string() }),
    key: ({ input }) => [input.step],
    timeoutMs: 30_000,
    execute: async ({ input, run, signal }) => {
      const watch = watching();
      watch.called(run.runId, input.step);
      if (watch.hang && input.step >= (watch.hangFrom ?? 0)) return watch.hang(input.step, signal);
      return answerOf(input.step);
    },
    reconcile: async ({ input }) => pawl.happened(answerOf(input.step)),
  });
  const events = pawl.defineEvents({ CANCEL: z.object({ by: z.string() }), GO: z.object({}) });
  const facts = z.array(z.object({ name: z.string(), value: z.string(), weight: z.number() }));
  const context = z.object({
    goal: z.string(),
    facts,
    steps: z.int(),
    latest: z.string(),
    until: z.int(),
    pauseAt: z.int(),
    grows: z.boolean(),
    answers: z.array(z.unknown()),
  });

  const isLast = ({ context }) => context.steps + 1 >= context.until;
  const isPause = ({ context }) => context.steps + 1 === context.pauseAt;
  const keep = assign({
    steps: ({ context }) => context.steps + 1,
    latest: ({ event }) => event.output.reference,
    answers: ({ context, event }) => (context.grows ? [...context.answers, event.output] : context.answers),
  });
  const acting = (id, next) => ({
    invoke: {
      id,
      src: 'act',
      input: ({ context }) => ({ step: context.steps + 1 }),
      onDone: [
        { guard: 'isLast', target: 'done', actions: 'keep' },
        { guard: 'isPause', target: 'paused', actions: 'keep' },
        { target: next, actions: 'keep' },
      ],
      onError: 'failed',
    },
    on: { CANCEL: 'cancelled' },
  });
  const machine = setup({ actors: { act }, guards: { isLast, isPause }, actions: { keep } }).createMachine({
    id: 'bench',
    initial: 'drafting',
    context: ({ input }) => initialContext(input),
    states: {
      drafting: acting('draft', 'checking'),
      checking: acting('check', 'drafting'),
      paused: { on: { GO: 'drafting', CANCEL: 'cancelled' } },
      done: { type: 'final' },
      failed: { type: 'final' },
      cancelled: { type: 'final' },
    },
  });
  return pawl.defineAgent({
    name: 'bench',
    version: 1,
    machine,
    events,
    input: z.object({ steps: z.int(), pauseAt: z.int().optional(), grows: z.boolean().optional() }),
    context,
  });
}

/** Its event has EVENT_BYTES. @param {number} step */
export function answerOf(step) {
  const answer = { reference: `ref-${String(step).padStart(12, '0')}`, score: 0.5, note: '' };
  const event = { type: 'xstate.done.actor.draft', output: answer, actorId: 'draft' };
  return { ...answer, note: words(EVENT_BYTES - JSON.stringify(event).length, step) };
}

/** @param {WorkInput} input */
function initialContext(input) {
  const context = {
    goal: 'Settle every open item of the batch and file each answer under its reference.',
    facts: Array.from({ length: 12 }, (_, index) => ({
      name: `fact-${index}`,
      value: words(90, index),
      weight: index / 7,
    })),
    steps: 0,
    latest: answerOf(0).reference,
    until: input.steps,
    pauseAt: input.pauseAt ?? 0,
    grows: input.grows ?? false,
    answers: [],
  };
  return { ...context, goal: context.goal + words(CONTEXT_BYTES - JSON.stringify(context).length, 5) };
}

/** @param {number} length @param {number} seed */
function words(length, seed) {
  let text = '';
  for (let index = 0; text.length < length; index++) text += `${((index + 3) * (seed + 7919)).toString(36)} `;
  return text.slice(0, Math.max(0, length));
}
