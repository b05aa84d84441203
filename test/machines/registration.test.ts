import {
  and,
  assign,
  cancel,
  createActor,
  createMachine,
  emit,
  enqueueActions,
  fromCallback,
  fromEventObservable,
  fromObservable,
  fromPromise,
  fromTransition,
  log,
  not,
  raise,
  sendTo,
  setup,
  spawnChild,
  stateIn,
  stopChild,
  type AnyStateMachine,
} from 'xstate';
import { describe, expect, test } from 'vitest';
import { createDurableMachine } from '../../src/machines/durable-machine.ts';
import { assertDurable, childMachines, machineAdvice, machineProblems } from '../../src/machines/registration.ts';
import { fakeTool } from './machines.ts';

// Each of these is refused by XState's types or by ours; here it is written by somebody who uses neither.
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;

const job = fakeTool('job');

function machineOf(config: Loose, provided: Loose = {}): AnyStateMachine {
  return setup({ actors: { job }, ...provided }).createMachine({ id: 'm', ...config });
}

const onX = (actions: Loose) => ({ on: { X: { actions } } });

const REFUSED: [string, AnyStateMachine, string, RegExp][] = [
  ['no id', createMachine({ initial: 'a', states: { a: {} } }), 'the machine', /has no id/],
  ['a promise', machineOf({}, { actors: { job: fromPromise(async () => 1) } }), "actor 'job'", /write it as tool\(\)/],
  ['a callback', machineOf({}, { actors: { job: fromCallback(() => {}) } }), "actor 'job'", /callback/],
  [
    'an observable',
    machineOf({}, { actors: { job: fromObservable(() => ({}) as Loose) } }),
    "actor 'job'",
    /observable/,
  ],
  [
    'an event observable',
    machineOf({}, { actors: { job: fromEventObservable(() => ({}) as Loose) } }),
    "actor 'job'",
    /observable/,
  ],
  [
    'transition logic',
    machineOf({}, { actors: { job: fromTransition((state) => state, {}) } }),
    "actor 'job'",
    /transition logic/,
  ],
  [
    'inline logic in an invoke',
    machineOf({ invoke: { src: job, id: 'j' } }),
    "m, invoke 'j'",
    /inline logic.*src: 'name'/,
  ],
  ['inline logic in a spawn', machineOf(onX(spawnChild(job, { id: 'k' }))), 'm, on X, action 1', /spawns inline logic/],
  ['an unknown actor', machineOf({ invoke: { src: 'nobody', id: 'n' } }), "m, invoke 'n'", /runs 'nobody'/],
  [
    'a spawn of an unknown actor',
    machineOf(onX(spawnChild('nobody' as Loose, { id: 'k' }))),
    'm, on X, action 1',
    /spawns 'nobody'/,
  ],
  ['a spawn without id', machineOf(onX(spawnChild('job'))), 'm, on X, action 1', /without an id/],
  [
    'a named action with a body',
    machineOf({}, { actions: { notify: () => {} } }),
    "action 'notify'",
    /invoke a tool, or emit/,
  ],
  ['an inline action with a body', machineOf({ entry: () => {} }), 'm, entry action 1', /body of its own/],
  ['the same on exit', machineOf({ exit: [cancel('x'), () => {}] }), 'm, exit action 2', /body of its own/],
  ['an action without implementation', machineOf({ entry: 'ghost' }), 'm, entry action 1', /names action 'ghost'/],
  [
    'the same on an initial transition',
    machineOf({ initial: { target: 'a', actions: 'ghost' }, states: { a: {} } }),
    'm, initial, action 1',
    /ghost/,
  ],
  [
    'the same on always',
    machineOf({ initial: 'a', states: { a: { always: { guard: () => true, target: 'b', actions: 'ghost' } }, b: {} } }),
    'm.a, always, action 1',
    /ghost/,
  ],
  [
    'the same on onDone',
    machineOf({ invoke: { src: 'job', id: 'j', onDone: { actions: 'ghost' } } }),
    'm, on xstate.done.actor.j, action 1',
    /ghost/,
  ],
  [
    'a guard without implementation',
    machineOf({ on: { X: { guard: 'ghost', actions: log('x') } } }),
    'm, on X',
    /asks guard 'ghost'/,
  ],
  [
    'the same inside and',
    machineOf({ on: { X: { guard: and(['ghost', not('other')] as Loose), actions: log('x') } } }),
    'm, on X',
    /'ghost'/,
  ],
  [
    'the same inside a provided guard',
    machineOf({}, { guards: { both: and(['ghost'] as Loose) } }),
    "guard 'both'",
    /'ghost'/,
  ],
  [
    'stateIn of no state',
    machineOf({ on: { X: { guard: stateIn('#m.nowhere'), actions: log('x') } } }),
    'm, on X',
    /is no state/,
  ],
  [
    'an asynchronous guard',
    machineOf({ on: { X: { guard: (async () => true) as Loose, actions: log('x') } } }),
    'm, on X',
    /always true/,
  ],
  [
    'an asynchronous assign',
    machineOf(onX(assign((async () => ({})) as Loose))),
    'm, on X, action 1',
    /result is lost/,
  ],
  [
    'an asynchronous collector',
    machineOf(onX(enqueueActions((async () => {}) as Loose))),
    'm, on X, action 1',
    /asynchronous/,
  ],
  [
    'spawn in assign',
    machineOf(onX(assign({ ref: ({ spawn }: Loose) => spawn('job') }))),
    'm, on X, action 1',
    /spawn\(\) inside assign/,
  ],
  [
    'spawn in the context',
    machineOf({ context: ({ spawn }: Loose) => ({ ref: spawn('job') }) }),
    'm, context',
    /spawn\(\)/,
  ],
  [
    'a delay name in after',
    machineOf({ initial: 'a', states: { a: { after: { typo: 'b' } }, b: {} } }),
    "m.a, after 'typo'",
    /fire it at once/,
  ],
  [
    'a delay name in raise',
    machineOf(onX(raise({ type: 'Y' }, { delay: 'typo' } as Loose))),
    'm, on X, action 1',
    /names delay 'typo'/,
  ],
  [
    'a delay that is no time',
    machineOf(onX(raise({ type: 'Y' }, { delay: Number.NaN }))),
    'm, on X, action 1',
    /has the delay NaN/,
  ],
  [
    'a negative after',
    machineOf({ initial: 'a', states: { a: { after: { '-5': 'b' } }, b: {} } }),
    "m.a, after '-5'",
    /finite/,
  ],
  [
    'an infinite after',
    machineOf({ initial: 'a', states: { a: { after: { Infinity: 'b' } }, b: {} } }),
    "m.a, after 'Infinity'",
    /finite/,
  ],
  ['a provided delay that is no time', machineOf({}, { delays: { d: -1 } }), "delay 'd'", /is -1/],
  [
    'one invoke id twice',
    machineOf({
      type: 'parallel',
      states: { a: { invoke: { src: 'job', id: 'j' } }, b: { invoke: { src: 'job', id: 'j' } } },
    }),
    'm.a and m.b',
    /'j' is used twice/,
  ],
  [
    'one state id twice',
    machineOf({ initial: 'a', states: { a: { id: 'x' }, b: { id: 'x' } } }),
    'm.a and m.b',
    /state id 'x' is used twice/,
  ],
  ['a systemId', machineOf({ invoke: { src: 'job', id: 'j', systemId: 's' } }), "m, invoke 'j'", /systemId/],
  [
    'a systemId in a spawn',
    machineOf(onX(spawnChild('job', { id: 'k', systemId: 's' }))),
    'm, on X, action 1',
    /systemId/,
  ],
  ['onSnapshot', machineOf({ invoke: { src: 'job', id: 'j', onSnapshot: {} } }), "m, invoke 'j'", /onSnapshot/],
  [
    'syncSnapshot',
    machineOf(onX(spawnChild('job', { id: 'k', syncSnapshot: true }))),
    'm, on X, action 1',
    /syncSnapshot/,
  ],
  [
    'a route',
    machineOf({ initial: 'a', states: { a: { id: 'a', route: {} } } }),
    'a, route',
    /jump here from any state/,
  ],
  [
    "'*' with a target",
    machineOf({ initial: 'a', states: { a: { on: { '*': 'b' } }, b: {} } }),
    'm.a, on *',
    /completions and failures too/,
  ],
  [
    "'*' with actions",
    machineOf({ on: { '*': { actions: emit({ type: 'x' } as Loose) } } }),
    'm, on *',
    /'\*': undefined/,
  ],
  ["'xstate.*'", machineOf({ on: { 'xstate.*': { actions: log('x') } } }), 'm, on xstate.*', /XState's own events/],
  [
    'a send to a reference',
    machineOf(onX(sendTo(createActor(job as Loose) as Loose, { type: 'Y' }))),
    'm, on X, action 1',
    /actor reference/,
  ],
  [
    'an endless always',
    machineOf({ initial: 'a', states: { a: { always: 'b' }, b: { always: 'a' } } }),
    'm.a → m.b',
    /without an end/,
  ],
  [
    'an always that assigns for ever',
    machineOf({ initial: 'a', states: { a: { always: { actions: assign({}) } } } }),
    'm.a',
    /without an end/,
  ],
  [
    'the history of a state it is inside of',
    machineOf({
      initial: 'p',
      states: { p: { initial: 'a', states: { a: { on: { X: 'h' } }, h: { type: 'history' } } } },
    }),
    'm.p.a, on X',
    /has not been left/,
  ],
];

test.each(REFUSED)('refused: %s', (_name, machine, place, message) => {
  const problems = machineProblems(machine);
  expect(problems).toContainEqual({ place, message: expect.stringMatching(message) as string });
  expect(() => createDurableMachine(machine)).toThrow(expect.objectContaining({ code: 'MACHINE_NOT_DURABLE' }));
});

test.each(REFUSED.filter(([name]) => name !== 'no id'))('refused once: %s', (_name, machine) => {
  expect(machineProblems(machine)).toHaveLength(1 + Number(_name === 'the same inside and'));
});

const ALLOWED: [string, AnyStateMachine][] = [
  ['inline guards', machineOf({ on: { X: { guard: () => true, actions: log('x') } } })],
  [
    'inline built-in actions',
    machineOf(onX([assign({}), raise({ type: 'Y' }), emit({ type: 'e' } as Loose), stopChild('k'), cancel('c')])),
  ],
  ['named built-in actions', machineOf(onX('add'), { actions: { add: assign({}) } })],
  ['an invoke id by default', machineOf({ invoke: { src: 'job' } })],
  ['no version', machineOf({})],
  [
    'after, and a delayed raise without id',
    machineOf({
      ...onX(raise({ type: 'Y' }, { delay: 5 })),
      initial: 'a',
      states: { a: { after: { 5: 'b' } }, b: {} },
    }),
  ],
  [
    'delays by name',
    machineOf(
      {
        ...onX(raise({ type: 'Y' }, { delay: 'd' } as Loose)),
        initial: 'a',
        states: { a: { after: { d: 'b', e: 'b' } }, b: {} },
      },
      { delays: { d: 5, e: () => 6 } },
    ),
  ],
  [
    "'*' that only refuses",
    machineOf({ initial: 'a', on: { GO: '.b' }, states: { a: { on: { '*': undefined } }, b: { on: { '*': {} } } } }),
  ],
  ['an invoke without onError', machineOf({ invoke: { src: 'job', id: 'j' } })],
  [
    'completions of spawned children',
    machineOf({
      on: { 'xstate.done.actor.kid': { actions: log('x') }, 'xstate.error.actor.*': { actions: log('y') } },
    }),
  ],
  ['a spawn with a dynamic id', machineOf(onX(spawnChild('job', { id: (({ event }: Loose) => event.id) as Loose })))],
  [
    'an always that ends',
    machineOf({
      initial: 'a',
      states: {
        a: { always: 'b' },
        b: { always: { guard: () => false, target: 'a' } },
        c: { always: { actions: log('once') } },
      },
    }),
  ],
  [
    'a machine as an actor',
    machineOf({ invoke: { src: 'child', id: 'c' } }, { actors: { child: createMachine({ id: 'child' }) } }),
  ],
  [
    'history from outside, and from the state itself',
    machineOf({
      initial: 'p',
      states: {
        p: { initial: 'a', on: { AGAIN: { target: '.h', reenter: true } }, states: { a: {}, h: { type: 'history' } } },
        q: { on: { BACK: 'p.h' } },
      },
    }),
  ],
];

test.each(ALLOWED)('allowed: %s', (_name, machine) => {
  expect(machineProblems(machine)).toEqual([]);
  expect(createDurableMachine(machine).id).toBe('m');
});

describe('the error', () => {
  const bad = machineOf({
    entry: 'ghost',
    invoke: { src: 'nobody', id: 'n', systemId: 's' },
    on: { X: { guard: 'maybe', actions: () => {} } },
  });

  test('names every problem with its place, as text and as data', () => {
    expect(() => assertDurable(bad)).toThrow(
      /cannot be resumed:\n- m, entry action 1: .*\n- m, invoke 'n': .*\n- m, invoke 'n': .*\n- m, on X: .*\n- m, on X, action 1: /,
    );
    try {
      assertDurable(bad);
    } catch (error) {
      expect((error as { details: { problems: unknown[] } }).details.problems).toHaveLength(5);
    }
  });
});

test('advice: an invoke whose failure nobody takes', () => {
  const machine = machineOf({
    invoke: [
      { src: 'job', id: 'j' },
      { src: 'job', id: 'k', onError: { actions: log('x') } },
    ],
  });
  expect(machineAdvice(machine)).toEqual([
    { place: "m, invoke 'j'", message: expect.stringContaining('no onError') as string },
  ]);
});

test('child machines are known by their name in the chart', () => {
  const child = createMachine({ id: 'other' });
  expect(childMachines(machineOf({}, { actors: { job, inner: child } }))).toEqual(['inner']);
});
