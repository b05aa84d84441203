import { assign, createMachine, setup } from 'xstate';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  defineAgent,
  parseInput,
  type AgentContext,
  type AgentDefinition,
  type AgentEvent,
  type AgentInput,
  type AgentName,
  type AgentOutput,
  type AgentStateValue,
} from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import { createLogic } from '../../src/machines/logic.ts';
import { fakeTool } from './machines.ts';

const events = defineEvents({
  GO: z.object({ amount: z.int() }),
  PLAN: z.object({ why: z.string() }),
  STOP: { schema: z.object({}), whenIllegal: 'drop' },
});
const plan = createLogic<'decide', unknown, unknown, { proposals: unknown }>({
  kind: 'decide',
  name: 'plan',
  definition: { proposals: events.pick('PLAN') },
});

const machine = setup({
  types: {} as {
    context: { total: number };
    events: EventsOf<typeof events>;
    input: { start: number };
    output: { sum: number };
  },
  actors: { job: fakeTool<{ n: number }, { ok: boolean }>('job'), plan },
}).createMachine({
  id: 'sum',
  context: ({ input }) => ({ total: input.start }),
  initial: 'idle',
  states: {
    idle: {
      on: {
        GO: { target: 'work', actions: assign({ total: ({ context, event }) => context.total + event.amount }) },
        PLAN: 'work',
      },
    },
    work: {
      invoke: { src: 'job', id: 'job', input: ({ context }) => ({ n: context.total }), onDone: 'end' },
      on: { STOP: 'end' },
    },
    end: { type: 'final' },
  },
  output: ({ context }) => ({ sum: context.total }),
});

const input = z.object({ start: z.int().default(1) });
const agent = defineAgent({
  name: 'sum',
  version: 2,
  machine,
  events,
  input,
  context: z.object({ total: z.int() }),
  goal: ({ input: given }) => `from ${given.start}`,
});

describe('types', () => {
  test('name, input, events, context, output and state are those of the agent', () => {
    expectTypeOf<AgentName<typeof agent>>().toEqualTypeOf<'sum'>();
    expectTypeOf<AgentInput<typeof agent>>().toEqualTypeOf<{ start?: number | undefined }>();
    expectTypeOf<AgentEvent<typeof agent>>().toEqualTypeOf<
      { type: 'GO'; amount: number } | { type: 'PLAN'; why: string } | { type: 'STOP' }
    >();
    expectTypeOf<AgentContext<typeof agent>>().toEqualTypeOf<{ total: number }>();
    expectTypeOf<AgentOutput<typeof agent>>().toEqualTypeOf<{ sum: number }>();
    expectTypeOf<AgentStateValue<typeof agent>>().toEqualTypeOf<'idle' | 'work' | 'end'>();
  });

  test('several agents are one list, told apart by name', () => {
    const other = defineAgent({
      name: 'other',
      version: 1,
      machine: createMachine({ id: 'o' }),
      events: defineEvents({}),
      input: z.object({ who: z.string() }),
    });
    const agents = [agent, other] as const satisfies readonly AgentDefinition[];
    type One = (typeof agents)[number];
    expectTypeOf<AgentName<One>>().toEqualTypeOf<'sum' | 'other'>();
    expectTypeOf<AgentInput<Extract<One, { name: 'other' }>>>().toEqualTypeOf<{ who: string }>();
  });

  test('what does not fit the machine does not type-check', () => {
    const fewer = events.pick('GO', 'PLAN');
    const more = defineEvents({ ...events.specs, EXTRA: z.object({}) });
    const rest = { name: 'x', version: 1, machine, input } as const;
    // @ts-expect-error STOP is missing
    expect(() => defineAgent({ ...rest, events: fewer })).toThrow(/chart takes 'STOP'/);
    // @ts-expect-error EXTRA is none of the machine's events
    defineAgent({ ...rest, events: more });
    // @ts-expect-error the machine's input is { start }
    defineAgent({ ...rest, events, input: z.object({ begin: z.int() }) });
    // @ts-expect-error the machine's context is { total: number }
    defineAgent({ ...rest, events, context: z.object({ total: z.string() }) });
    // @ts-expect-error a payload of GO has an amount
    expect(() => defineAgent({ ...rest, events, samples: { GO: [{ amount: 'x' }] } })).toThrow(
      /does not fit its schema/,
    );
    defineAgent({ ...rest, events, samples: { GO: [{ amount: 3 }] }, abstract: (context) => context.total % 3 });
  });

  test('a machine without declared events takes any', () => {
    const untyped = createMachine({ id: 'u', initial: 'a', states: { a: { on: { GO: 'b' } }, b: {} } });
    expect(
      defineAgent({
        name: 'u',
        version: 1,
        machine: untyped,
        events: defineEvents({ GO: z.object({}) }),
        input: z.object({}),
      }).name,
    ).toBe('u');
  });
});

test('what is not given has a default', () => {
  expect(agent).toMatchObject({
    version: 2,
    tools: [],
    budget: {},
    approveOutbound: false,
    accept: {},
    sensitive: [],
    migrations: {},
    samples: {},
    abstract: null,
    maxIterations: 1_000,
  });
  expect(agent.structure).toBe(agent.durable.structure);
  expect(Object.keys(agent.logic)).toEqual(['job', 'plan']);
  expect(agent.goal({ input: { start: 4 } })).toBe('from 4');
});

test('what a decide of the chart proposes comes from the model only', () => {
  expect(agent.events.typesFrom('caller')).toEqual(['GO', 'STOP']);
  expect(agent.events.typesFrom('model')).toEqual(['PLAN']);
  expect(events.typesFrom('caller')).toEqual(['GO', 'PLAN', 'STOP']);
});

test('input is parsed once, and what comes out is JSON', () => {
  expect(parseInput(agent, {})).toEqual({ ok: true, input: { start: 1 } });
  expect(parseInput(agent, { start: 'x' })).toMatchObject({
    ok: false,
    fault: { code: 'INVALID_INPUT', message: expect.stringContaining('input.start') as string },
  });
});

describe('refused with everything that is wrong', () => {
  const rest = { name: 'sum', version: 1, machine, events, input };
  test.each([
    ['a name with a space', { name: 'a b' }, /name is 1 to 200/],
    ['a version that is no number', { version: 1.5 }, /version is a positive whole number/],
    ['an input that is not JSON', { input: z.object({ start: z.int(), when: z.date() }) }, /input: .*not plain JSON/],
    ['no input', { input: undefined }, /input: a zod schema is needed/],
    ['a context that is not JSON', { context: z.object({ total: z.bigint() }) }, /context: .*not plain JSON/],
    ['a budget nobody keeps', { budget: { dollars: 1 } }, /'dollars' is none of/],
    ['half a token', { budget: { tokens: 0.5 } }, /tokens is a whole number/],
    ['a tool that is none', { tools: [{}] }, /each must be made by tool/],
    ['a migration from the future', { migrations: { 3: (state: object) => state } }, /'3' is not an earlier version/],
    ['a sample of no event', { samples: { NOPE: [{}] } }, /'NOPE' is no event/],
    ['no machine', { machine: {} }, /must be an XState machine/],
    ['no events', { events: { GO: z.object({}) } }, /must come from defineEvents/],
  ])('%s', (_name, change, message) => {
    expect(() => defineAgent({ ...rest, ...change } as never)).toThrow(
      expect.objectContaining({ code: 'AGENT_INVALID', message: expect.stringMatching(message) as string }),
    );
  });

  test('all at once', () => {
    expect(() => defineAgent({ ...rest, name: '', version: 0, budget: { steps: -1 } } as never)).toThrow(
      /name is .*\n.*version is .*\n.*steps is/,
    );
  });

  test('a machine that is not durable', () => {
    const bad = setup({ actions: { notify: () => {} } }).createMachine({ id: 'bad', entry: 'notify' });
    expect(() =>
      defineAgent({ name: 'bad', version: 1, machine: bad, events: defineEvents({}), input: z.object({}) }),
    ).toThrow(expect.objectContaining({ code: 'MACHINE_NOT_DURABLE' }));
  });
});
