import { and, assign, not, raise, setup, stateIn } from 'xstate';
import { describe, expect, test } from 'vitest';
import { classify, possibleEvents } from '../../src/machines/classify.ts';
import { now, random } from '../../src/machines/determinism.ts';
import { fakeTool, walk } from './machines.ts';

type Args = { context: { budget: number }; event: { type: string; role?: string } };

const machine = setup({
  types: {} as { context: { budget: number }; events: { type: string; role?: string } },
  actors: { job: fakeTool('job') },
  guards: {
    hasBudget: ({ context }: Args) => context.budget > 0,
    isHuman: ({ event }: Args) => event.role === 'human',
    throws: () => {
      throw new Error('boom');
    },
    atLeast: ({ context }: Args, params: { min: number }) => context.budget >= params.min,
    late: () => now() > 5_000,
    lucky: () => random() < 2,
  },
}).createMachine({
  id: 'm',
  context: { budget: 1 },
  type: 'parallel',
  on: { ROOT: { actions: raise({ type: 'X' }) }, BOTH: { actions: raise({ type: 'X' }) } },
  states: {
    one: {
      initial: 'a',
      on: {
        GUARDED_ABOVE: { guard: 'isHuman', target: '.b' },
        PARENT: '.b',
        HIDDEN: '.b',
        FALL: '.b',
        INERT: { guard: 'isHuman' },
      },
      states: {
        a: {
          invoke: { src: 'job', id: 'job' },
          on: {
            PLAIN: 'b',
            SELF: 'a',
            ACTION: { actions: assign({ budget: 0 }) },
            BUDGET: { guard: 'hasBudget', target: 'b' },
            NO_BUDGET: { guard: not('hasBudget'), target: 'b' },
            HUMAN: { guard: 'isHuman', target: 'b' },
            MIXED: [
              { guard: not('hasBudget'), target: 'b' },
              { guard: 'isHuman', target: 'b' },
            ],
            PARAMS: {
              guard: { type: 'atLeast', params: ({ event }) => ({ min: event.role === 'x' ? 9 : 0 }) },
              target: 'b',
            },
            STATE: { guard: and([stateIn('#m.one.b'), 'isHuman']), target: 'b' },
            THROWS: { guard: 'throws', target: 'b' },
            HIDDEN: undefined,
            EMPTY: {},
            GUARDED_ABOVE: undefined,
            LIST: [],
            FALL: { guard: not('hasBudget'), target: 'b' },
            GUARDED_THEN_REFUSED: [{ guard: 'isHuman', target: 'b' }, {}],
            TIMED: { guard: 'late', target: 'b' },
            LUCKY: { guard: 'lucky', target: 'b' },
            BOTH: undefined,
            'feed.*': 'b',
          },
        },
        b: {},
      },
    },
    two: { initial: 'c', states: { c: { on: { BOTH: 'd' } }, d: {} } },
  },
});

const run = walk(machine);
const at = { runId: 'r', sequence: 2, atMs: 9_000 };
const kind = (type: string, payload = {}) => classify(run.machine, run.snapshot, { type, ...payload }, at);
const possible = (...types: string[]) => possibleEvents(run.machine, run.snapshot, types, at);

test.each([
  ['PLAIN', 'legal'],
  ['SELF', 'legal'],
  ['ACTION', 'legal'],
  ['BUDGET', 'legal'],
  ['NO_BUDGET', 'guard_rejected'],
  ['HUMAN', 'guard_rejected'],
  ['MIXED', 'guard_rejected'],
  ['PARAMS', 'legal'],
  ['STATE', 'guard_rejected'],
  ['HIDDEN', 'forbidden'],
  ['EMPTY', 'forbidden'],
  ['GUARDED_ABOVE', 'forbidden'],
  ['LIST', 'unhandled'],
  ['FALL', 'legal'],
  ['PARENT', 'legal'],
  ['ROOT', 'legal'],
  ['BOTH', 'legal'],
  ['INERT', 'unhandled'],
  ['GUARDED_THEN_REFUSED', 'guard_rejected'],
  ['TIMED', 'legal'],
  ['LUCKY', 'legal'],
  ['feed', 'legal'],
  ['feed.a.b', 'legal'],
  ['UNKNOWN', 'unhandled'],
  ['*', 'unhandled'],
] as const)('%s is %s', (type, expected) => {
  expect(kind(type)).toBe(expected);
});

test('the payload decides where a guard reads it', () => {
  expect(kind('HUMAN', { role: 'human' })).toBe('legal');
  expect(kind('MIXED', { role: 'human' })).toBe('legal');
  expect(kind('PARAMS', { role: 'x' })).toBe('guard_rejected');
});

test('a guard that throws is a fault, also behind a probe', () => {
  expect(() => kind('THROWS')).toThrow(
    expect.objectContaining({ code: 'STEP_THREW', message: expect.stringContaining('boom') as string }),
  );
  expect(() => possible('THROWS')).toThrow(expect.objectContaining({ code: 'STEP_THREW' }));
});

describe('what is possible without a payload', () => {
  test('guards over the context are exact', () => {
    expect(possible('PLAIN', 'SELF', 'ACTION', 'BUDGET', 'NO_BUDGET')).toEqual(['PLAIN', 'SELF', 'ACTION', 'BUDGET']);
  });

  test('guards and params that read the payload may say yes', () => {
    expect(possible('HUMAN', 'MIXED', 'PARAMS', 'GUARDED_THEN_REFUSED')).toEqual([
      'HUMAN',
      'MIXED',
      'PARAMS',
      'GUARDED_THEN_REFUSED',
    ]);
  });

  test('a guard that says no before the payload is read is exact', () => {
    expect(possible('STATE')).toEqual([]);
  });

  test('a refusal in a child hides the parent; a false guard falls through to it', () => {
    expect(possible('HIDDEN', 'EMPTY', 'LIST', 'FALL', 'PARENT', 'ROOT')).toEqual(['FALL', 'PARENT', 'ROOT']);
  });

  test('a refusal in one region leaves the other', () => {
    expect(possible('BOTH')).toEqual(['BOTH']);
  });

  test('what only a wildcard takes is not offered', () => {
    expect(possible('feed', 'UNKNOWN')).toEqual([]);
  });

  test('guards that ask for time or chance are exact at a known time, and may say yes at none', () => {
    const early = { ...at, atMs: 10 };
    expect(possibleEvents(run.machine, run.snapshot, ['TIMED', 'LUCKY'], early)).toEqual(['LUCKY']);
    expect(possibleEvents(run.machine, run.snapshot, ['TIMED', 'LUCKY'])).toEqual(['TIMED', 'LUCKY']);
    expect(() => classify(run.machine, run.snapshot, { type: 'TIMED' })).toThrow(
      expect.objectContaining({ code: 'IMPURE_MACHINE' }),
    );
  });
});

test.each<[string, (event: object) => unknown]>([
  ['reads a field', (event) => (event as { x?: number }).x],
  ['asks for a field', (event) => 'x' in event],
  ['lists the fields', (event) => Reflect.ownKeys(event)],
  ['describes a field', (event) => Object.getOwnPropertyDescriptor(event, 'x')],
  ['spreads the event', (event) => ({ ...event })],
])('a guard that %s and swallows what comes of it still makes its event possible', (_name, read) => {
  const guard = ({ event }: { event: object }): boolean => {
    try {
      read(event);
    } catch {
      return false;
    }
    return false;
  };
  const careless = setup({}).createMachine({ id: 'careless', on: { X: { guard, actions: raise({ type: 'Y' }) } } });
  const { machine: durable, snapshot } = walk(careless);
  expect(possibleEvents(durable, snapshot, ['X'])).toEqual(['X']);
});

test('a final run takes nothing', () => {
  const done = walk(
    setup({}).createMachine({ id: 'd', initial: 'z', on: { X: '.z' }, states: { z: { type: 'final' } } }),
  );
  expect(classify(done.machine, done.snapshot, { type: 'X' })).toBe('unhandled');
  expect(possibleEvents(done.machine, done.snapshot, ['X'])).toEqual([]);
});
