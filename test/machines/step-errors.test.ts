import { assign, emit, enqueueActions, log, raise, sendTo, setup, spawnChild } from 'xstate';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createDurableMachine } from '../../src/machines/durable-machine.ts';
import { initialStep } from '../../src/machines/step.ts';
import { fakeTool, walk } from './machines.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- what is tried here is what types forbid
type Loose = any;

function boom(): never {
  throw new RangeError('boom');
}

const cycle: { self?: unknown } = {};
cycle.self = cycle;

function machineOf(on: Loose, more: Loose = {}) {
  return setup({ actors: { job: fakeTool('job') } } as Loose).createMachine({
    id: 'm',
    context: { n: 0, list: [1] },
    initial: 'a',
    on,
    states: { a: {}, b: { after: { 5: 'a' } } },
    ...more,
  } as Loose);
}

const queued = (queue: (enqueue: Loose) => void) => ({
  actions: enqueueActions(({ enqueue }: Loose) => queue(enqueue)),
});

const THROWING: [string, Loose, RegExp][] = [
  ['an assign', { actions: assign(boom) }, /boom/],
  ['a guard', { guard: boom, target: '.b' }, /boom/],
  ['an emit', { actions: emit(boom as Loose) }, /boom/],
  ['an input mapper', { actions: spawnChild('job' as Loose, { id: 'k', input: boom } as Loose) }, /boom/],
  ['a delay', { actions: raise({ type: 'Y' }, { delay: boom }) }, /boom/],
  [
    'a delay that is text',
    { actions: raise({ type: 'Y' }, { delay: (() => '100') as Loose }) },
    /gave 100; it must be a finite number/,
  ],
  [
    'a delay that is undefined',
    { actions: raise({ type: 'Y' }, { delay: (() => undefined) as Loose }) },
    /gave undefined/,
  ],
  [
    'a delay that is negative',
    { actions: sendTo(({ self }: Loose) => self, { type: 'Y' }, { delay: () => -1 }) },
    /gave -1/,
  ],
  [
    'a delay name that is not provided',
    queued((enqueue) => enqueue.raise({ type: 'Y' }, { delay: 'typo' })),
    /'typo' is not provided/,
  ],
  [
    'a delay that is no time, enqueued',
    queued((enqueue) => enqueue.raise({ type: 'Y' }, { delay: Number.POSITIVE_INFINITY })),
    /gave Infinity/,
  ],
  ['a target that is undefined', { actions: sendTo((() => undefined) as Loose, { type: 'Y' }) }, /target is undefined/],
  [
    'a target that is undefined, enqueued',
    queued((enqueue) => enqueue.sendTo(() => undefined, { type: 'Y' })),
    /target is undefined/,
  ],
  ['a target that is not live', { actions: sendTo('ghost', { type: 'Y' }) }, /ghost/],
  [
    'a custom action, enqueued',
    queued((enqueue) => enqueue(function notify() {})),
    /Action 'notify' has a body of its own/,
  ],
  [
    'a custom action that looks like a built-in',
    queued((enqueue) => enqueue(Object.defineProperty(() => {}, 'name', { value: 'xstate.emit' }))),
    /'xstate.emit' has a body/,
  ],
  ['inline logic, enqueued', queued((enqueue) => enqueue.spawnChild(fakeTool('x'), { id: 'k' })), /inline logic/],
  [
    'an unknown actor, enqueued',
    queued((enqueue) => enqueue.spawnChild('ghost', { id: 'k' })),
    /'ghost' is not provided/,
  ],
  ['a child without id, enqueued', queued((enqueue) => enqueue.spawnChild('job')), /without an id/],
  [
    'a systemId, enqueued',
    queued((enqueue) => enqueue.spawnChild('job', { id: 'k', systemId: 's' })),
    /systemId 's' is not durable/,
  ],
  [
    'spawn that the source hides',
    { actions: assign((args: Loose) => ({ ref: args[['sp', 'awn'].join('')]('job') })) },
    /spawn\(\) inside assign/,
  ],
  ['a promise from assign', { actions: assign((() => Promise.resolve({})) as Loose) }, /asynchronous/],
  ['a promise from a collector', { actions: enqueueActions((() => Promise.resolve()) as Loose) }, /asynchronous/],
  [
    'an event sent from an assign',
    { actions: assign(({ self }: Loose) => self.send({ type: 'Y' })) },
    /from inside a step/,
  ],
  ['a loop of raises', { actions: raise({ type: 'X' }) }, /Infinite loop/],
];

test.each(THROWING)('%s throws STEP_THREW and leaves the run as it was', (_name, transition, message) => {
  const run = walk(machineOf({ X: transition }));
  const before = run.snapshot;
  const state = JSON.stringify([before.value, before.context, before.status, Object.keys(before.children)]);
  expect(() => run.send('X')).toThrow(
    expect.objectContaining({ code: 'STEP_THREW', message: expect.stringMatching(message) as string }),
  );
  expect(run.snapshot).toBe(before);
  expect(JSON.stringify([before.value, before.context, before.status, Object.keys(before.children)])).toBe(state);
  expect(run.send('UNKNOWN').applied).toBe(false);
});

test('what user code threw is kept as the cause, with where it happened', () => {
  const run = walk(machineOf({ X: { actions: assign(boom) } }), { runId: 'r-7' });
  try {
    run.send('X');
  } catch (error) {
    expect(error).toMatchObject({ cause: { name: 'RangeError' }, details: { runId: 'r-7', sequence: 2, event: 'X' } });
  }
  expect.assertions(1);
});

test('an initial step that throws gives nothing, whatever it had started', () => {
  const machine = machineOf(
    {},
    { invoke: { src: 'job', id: 'j' }, initial: 'b', states: { b: { entry: assign(boom) } } },
  );
  expect(() => walk(machine)).toThrow(
    expect.objectContaining({ code: 'STEP_THREW', message: expect.stringContaining('boom') as string }),
  );
});

test('an endless always that guards hide ends at the limit', () => {
  const machine = machineOf(
    { X: '.l' },
    { states: { a: {}, l: { always: { guard: () => true, actions: assign({ n: 1 }) } } } },
  );
  expect(() => walk(machine, { maxIterations: 5 }).send('X')).toThrow(/more than 5 microsteps/);
  expect(createDurableMachine(machine).maxIterations).toBe(1_000);
});

class Money {
  cents = 1;
}

const NOT_JSON: [string, unknown, string][] = [
  ['a Date', { when: new Date(0) }, '.when is Date'],
  ['undefined', { x: undefined }, '.x is undefined'],
  ['NaN', [1, Number.NaN], '[1] is NaN'],
  ['a class instance', { deep: [{ money: new Money() }] }, '.deep[0].money is Money'],
  ['a Map', new Map(), ' is Map'],
  ['a bigint', { n: 1n }, '.n is bigint'],
  ['a function', { f: () => 1 }, '.f is function'],
  ['a cycle', cycle, '.self is a cycle'],
  // oxlint-disable-next-line no-sparse-arrays -- the hole is the point
  ['a hole', [1, , 3], '[1] is a hole'],
  ['a lone surrogate', { s: '\uD800' }, '.s is a string with a lone surrogate'],
  ['a symbol key', { [Symbol('s')]: 1 }, ' is a symbol key'],
];

describe('what is not strict JSON is refused with its path', () => {
  test.each(NOT_JSON)('%s in the context', (_name, value, path) => {
    const run = walk(machineOf({ X: { actions: assign({ value: () => value } as Loose) } }));
    expect(() => run.send('X')).toThrow(
      expect.objectContaining({
        code: 'STEP_THREW',
        message: expect.stringContaining(`context.value${path}`) as string,
        cause: expect.objectContaining({ code: 'NOT_JSON' }) as unknown,
      }),
    );
  });

  test.each(NOT_JSON)('%s in what is emitted, logged, raised, sent or given as input', (_name, value, path) => {
    const payload = { type: 'Y', value } as Loose;
    const run = walk(
      machineOf({
        EMIT: { actions: emit(payload) },
        LOG: { actions: log(() => value) },
        LATER: { actions: raise(payload, { delay: 1 }) },
        SEND: { actions: sendTo(({ self }: Loose) => self, payload) },
        INPUT: { actions: spawnChild('job' as Loose, { id: 'k', input: () => ({ value }) } as Loose) },
      }),
    );
    for (const type of ['EMIT', 'LATER', 'SEND', 'INPUT', 'LOG']) {
      expect(() => run.send(type), type).toThrow(
        expect.objectContaining({ code: 'STEP_THREW', message: expect.stringContaining(path.trim()) as string }),
      );
    }
  });

  test.each(NOT_JSON)('%s in the output', (_name, value, path) => {
    const run = walk(machineOf({ X: '.z' }, { states: { a: {}, z: { type: 'final' } }, output: () => ({ value }) }));
    expect(() => run.send('X')).toThrow(
      expect.objectContaining({ code: 'STEP_THREW', message: expect.stringContaining(path.trim()) as string }),
    );
  });

  test('also in the first context', () => {
    expect(() => walk(machineOf({}, { context: () => ({ when: new Date(0) }) }))).toThrow(/context.when is Date/);
  });
});

describe('a context that is changed in place', () => {
  test.each([
    ['a list', (context: Loose) => context.list.push(2)],
    ['a field', (context: Loose) => (context.n = 7)],
  ])('%s: the step throws and nothing changed', (_name, mutate) => {
    const run = walk(machineOf({ X: { actions: assign(({ context }: Loose) => ({ mutated: mutate(context) })) } }));
    expect(() => run.send('X')).toThrow(expect.objectContaining({ code: 'STEP_THREW' }));
    expect(run.context()).toEqual({ n: 0, list: [1] });
  });

  test('in a guard too', () => {
    const run = walk(machineOf({ X: { guard: ({ context }: Loose) => context.list.push(2) > 0, target: '.b' } }));
    expect(() => run.send('X')).toThrow(expect.objectContaining({ code: 'STEP_THREW' }));
  });

  test('a value that an event brought in is frozen with it', () => {
    const run = walk(machineOf({ X: { actions: assign({ plan: ({ event }: Loose) => event.plan } as Loose) } }));
    const plan = { steps: ['a'] };
    run.send('X', { plan });
    expect(() => plan.steps.push('b')).toThrow(TypeError);
  });

  test('only what changed is looked at again', () => {
    let reads = 0;
    const big = { item: 1 };
    const run = walk(machineOf({ X: { actions: assign({ n: 1 }) } }, { context: { n: 0, big } }));
    const watched = new Proxy(Object.freeze({ ...big }), { ownKeys: (target) => (reads++, Reflect.ownKeys(target)) });
    Object.assign(run.snapshot, { context: { n: 0, big: watched } });
    run.send('X');
    expect(reads).toBe(0);
  });
});

describe('the context schema', () => {
  const schema = z.object({ n: z.int().max(2), list: z.array(z.number()) });

  test('each changed context must fit; the path is in the message', () => {
    const run = walk(
      machineOf({
        X: { actions: assign({ n: ({ context }: Loose) => context.n + 1 }) },
        BAD: { actions: assign({ list: ['x'] } as Loose) },
      }),
      { context: schema },
    );
    run.send('X');
    run.send('X');
    expect(() => run.send('X')).toThrow(
      expect.objectContaining({
        code: 'STEP_THREW',
        message: expect.stringContaining('context.n does not fit') as string,
      }),
    );
    expect(() => run.send('BAD')).toThrow(/context\.list\.0 does not fit/);
    expect(run.context()).toEqual({ n: 2, list: [1] });
  });

  test('the first one too', () => {
    expect(() => walk(machineOf({}, { context: { n: 9, list: [] } }), { context: schema })).toThrow(
      /context\.n does not fit/,
    );
  });

  test('rules over several fields, missing fields and strict schemas are checked as a whole', () => {
    const ordered = z
      .strictObject({ n: z.int(), list: z.array(z.number()) })
      .refine((value) => value.list.length >= value.n, 'too short');
    const on = {
      N: { actions: assign({ n: ({ context }: Loose) => context.n + 1 }) },
      EXTRA: { actions: assign({ extra: 1 } as Loose) },
    };
    const run = walk(machineOf(on), { context: ordered });
    run.send('N');
    expect(() => run.send('N')).toThrow(/too short/);
    expect(() => run.send('EXTRA')).toThrow(/does not fit/);
    const plain = walk(machineOf(on), { context: z.strictObject({ n: z.int(), list: z.array(z.number()) }) });
    expect(() => plain.send('EXTRA')).toThrow(/does not fit/);
  });
});

test('user code of the initial context runs once, of guards as often as they are asked, of everything else once per step', () => {
  const ran: Record<string, number> = {};
  const count = (name: string) => {
    ran[name] = (ran[name] ?? 0) + 1;
  };
  const machine = machineOf(
    { X: { guard: () => (count('guard'), true), actions: assign({ n: () => (count('assign'), 1) }), target: '.b' } },
    {
      context: () => (count('context'), { n: 0 }),
      states: {
        a: { entry: assign(() => (count('entry'), {})) },
        b: {
          invoke: { src: 'job', id: 'j', input: () => (count('input'), 1) },
          entry: enqueueActions(() => count('collect')),
        },
      },
    },
  );
  const durable = createDurableMachine(machine);
  initialStep(durable, null, { runId: 'r', sequence: 1, atMs: 0 });
  const run = walk(machine);
  run.send('X');
  run.send('UNKNOWN');
  expect(ran).toEqual({ context: 2, entry: 2, guard: 2, assign: 1, input: 1, collect: 1 });
});
