import { and, assign, createMachine, raise, setup, stateIn } from 'xstate';
import { expect, test } from 'vitest';
import { digestStructure } from '../../src/machines/structure.ts';
import { fakeTool } from './machines.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- the config is varied as data
type Loose = any;

const base: Loose = {
  id: 'm',
  context: { n: 0 },
  initial: 'a',
  states: {
    a: {
      on: { X: { target: 'b', guard: 'g', actions: ['add'] } },
      after: { 5: 'b' },
      invoke: { src: 'job', id: 'j', input: () => 1 },
    },
    b: { type: 'parallel', states: { one: {}, two: {} } },
    h: { type: 'history' },
  },
};
const provided: Loose = {
  actors: { job: fakeTool('job') },
  guards: { g: () => true },
  actions: { add: assign({ n: 1 }) },
  delays: { d: 5 },
};

const digest = (config: Loose = {}, implementations: Loose = {}): string =>
  digestStructure(setup({ ...provided, ...implementations }).createMachine({ ...base, ...config }));

const withA = (a: Loose): Loose => ({ states: { ...base.states, a: { ...base.states.a, ...a } } });

test.each([
  [
    'bodies and names of functions',
    {},
    {
      guards: {
        g: function renamed() {
          return false;
        },
      },
      actions: { add: assign({ n: () => 2 + 3 }) },
    },
  ],
  [
    'descriptions, metadata and tags',
    { description: 'd', ...withA({ meta: { pawl: { tokens: 1 } }, tags: ['t'], description: 'x' }) },
    {},
  ],
  ['the version of the machine', { version: '7' }, {}],
  ['the order of states', { states: Object.fromEntries(Object.entries(base.states).toReversed()) }, {}],
  ['the limit of microsteps', { options: { maxIterations: 5 } }, {}],
])('not in it: %s', (_name, config, implementations) => {
  // Inline functions stay functions; a constant in an assign is data.
  const before = digest({}, { actions: { add: assign({ n: () => 1 }) } });
  expect(digest(config, { actions: { add: assign({ n: () => 1 }) }, ...implementations })).toBe(before);
});

test.each([
  ['the id', { id: 'other' }, {}],
  ['a state', { states: { ...base.states, c: {} } }, {}],
  ['a target', withA({ on: { X: { target: 'h', guard: 'g', actions: ['add'] } } }), {}],
  ['a guard by name', withA({ on: { X: { target: 'b', guard: 'other', actions: ['add'] } } }), {}],
  ['an action by name', withA({ on: { X: { target: 'b', guard: 'g', actions: ['other'] } } }), {}],
  ['reenter', withA({ on: { X: { target: 'b', guard: 'g', actions: ['add'], reenter: true } } }), {}],
  ['a delay', withA({ after: { 6: 'b' } }), {}],
  ['a provided delay', {}, { delays: { d: 6 } }],
  ['an invoke id', withA({ invoke: { src: 'job', id: 'k' } }), {}],
  ['what an actor is', {}, { actors: { job: fakeTool('other') } }],
  ['that an actor is a machine', {}, { actors: { job: createMachine({ id: 'child' }) } }],
  ['the kind of history', { states: { ...base.states, h: { type: 'history', history: 'deep' } } }, {}],
  ['the order of regions', { states: { ...base.states, b: { type: 'parallel', states: { two: {}, one: {} } } } }, {}],
  ['a raised event', withA({ entry: raise({ type: 'Y' }) }), {}],
  ['the parts of a combined guard', {}, { guards: { g: and([stateIn('#m.b')]) } }],
])('in it: %s', (_name, config, implementations) => {
  expect(digest(config, implementations)).not.toBe(digest());
});

test('it is taken from the machine as written', () => {
  const machine = setup(provided).createMachine(base);
  expect(digestStructure(machine)).toBe(digest());
  expect(digestStructure(machine)).toMatch(/^[0-9a-f]{64}$/);
});
