import { getMicrosteps, initialTransition, setup, type AnyMachineSnapshot } from 'xstate';
import { expect, test } from 'vitest';
import { createStepScope } from '../../src/machines/actor-scope.ts';
import { checkConfiguration, inDocumentOrder } from '../../src/machines/configuration.ts';
import { createDurableMachine } from '../../src/machines/durable-machine.ts';
import type { AnyNode } from '../../src/machines/nodes.ts';

const { nodes, prepared } = createDurableMachine(
  setup({}).createMachine({
    id: 'm',
    initial: 'p',
    states: {
      p: {
        type: 'parallel',
        states: { one: { initial: 'a', states: { a: {}, b: {} } }, two: {}, h: { type: 'history' } },
      },
      q: {},
    },
  }),
);

const check = (...ids: string[]) => {
  checkConfiguration(ids.map((id) => nodes.get(id) as AnyNode));
};

test('whole configurations pass', () => {
  check('m', 'm.q');
  check('m', 'm.p', 'm.p.one', 'm.p.one.a', 'm.p.two');
});

test.each([
  ['a parent', ['m', 'm.p.one', 'm.p.one.a', 'm.p.two'], /'m.* active states|'m.p' is not active/],
  ['a region', ['m', 'm.p', 'm.p.one', 'm.p.one.a'], /'m.p' does not have all its regions/],
  ['the child of a compound state', ['m', 'm.p', 'm.p.one', 'm.p.two'], /'m.p.one' has 0 active states/],
  [
    'all but one of two children',
    ['m', 'm.p', 'm.p.one', 'm.p.one.a', 'm.p.one.b', 'm.p.two'],
    /'m.p.one' has 2 active states/,
  ],
])('refused: %s is missing', (_what, ids, message) => {
  expect(() => check(...ids)).toThrow(message);
});

test('XState makes such a state: the history of a parallel state, the first time, from inside of it', () => {
  const machine = setup({}).createMachine({
    id: 'm',
    initial: 'p',
    states: {
      p: { type: 'parallel', states: { a: { on: { X: '#m.p.h' } }, b: {}, h: { type: 'history', history: 'deep' } } },
    },
  });
  const [start] = initialTransition(machine);
  const [after] = getMicrosteps(machine, start, { type: 'X' }).at(-1) as unknown as [AnyMachineSnapshot];
  expect(after._nodes.map(({ id }) => id)).not.toContain('m.p');
  expect(() => checkConfiguration(after._nodes as AnyNode[])).toThrow(/impossible state/);
  const { scope } = createStepScope('r', 2, true);
  expect(() => machine.transition(start, { type: 'X' }, scope)).toThrow(/impossible state/);
  // It is refused at registration already; the check of each microstep is for what that does not foresee.
  expect(() => createDurableMachine(machine)).toThrow(/has not been left/);
});

test('regions of a value are put into document order', () => {
  const value = { p: { two: {}, one: 'a' } };
  expect(JSON.stringify(inDocumentOrder(prepared.root, value))).toBe('{"p":{"one":"a","two":{}}}');
  expect(inDocumentOrder(prepared.root, 'q')).toBe('q');
});
