import { and, cancel, emit, not, or, raise, setup, spawnChild, stateIn } from 'xstate';
import { describe, expect, test } from 'vitest';
import { fakeTool, walk } from './machines.ts';

const base = setup({
  types: {} as { context: { n: number }; events: { type: string; n?: number } },
  actors: { job: fakeTool('payments.job'), other: fakeTool('other') },
  delays: { dynamic: ({ context }) => context.n * 1000 },
});

describe('states', () => {
  test('always runs within the step; effects keep their order by kind, then by cause', () => {
    const machine = base.createMachine({
      id: 'm',
      context: { n: 0 },
      initial: 'a',
      states: {
        a: { on: { GO: 'b' }, exit: [emit({ type: 'one' } as never), spawnChild('job', { id: 'k' })] },
        b: {
          always: { target: 'c', actions: raise({ type: 'X' }, { delay: 9, id: 't' }) },
          exit: emit({ type: 'two' } as never),
        },
        c: { entry: cancel('old') },
      },
    });
    expect(
      walk(machine)
        .send('GO')
        .effects.map(({ kind }) => kind),
    ).toEqual(['disarm', 'start', 'arm', 'emit', 'emit']);
  });

  test('parallel regions take one event together, in document order whatever was entered last', () => {
    const region = (name: string) => ({
      initial: 'x',
      on: { [`RE_${name}`]: { target: `#m.${name}`, reenter: true } },
      states: { x: { on: { GO: 'y' } }, y: { entry: emit({ type: name } as never), on: { GO: 'x' } } },
    });
    const machine = setup({}).createMachine({
      id: 'm',
      type: 'parallel',
      states: { one: region('one'), two: region('two') },
    });
    const run = walk(machine);
    run.send('RE_one');
    expect(JSON.stringify(run.state())).toBe('{"one":"x","two":"x"}');
    expect(run.send('GO').effects).toEqual([
      { kind: 'emit', event: { type: 'one' } },
      { kind: 'emit', event: { type: 'two' } },
    ]);
  });

  test('history brings back one level or all', () => {
    const inner = { initial: 'p', states: { p: { on: { NEXT: 'q' } }, q: {} } };
    const machine = setup({}).createMachine({
      id: 'm',
      initial: 'on',
      states: {
        on: {
          initial: 'a',
          on: { OFF: 'off' },
          states: {
            a: { on: { B: 'b' } },
            b: inner,
            h: { type: 'history' },
            deep: { type: 'history', history: 'deep' },
          },
        },
        off: { on: { SHALLOW: 'on.h', DEEP: 'on.deep' } },
      },
    });
    const run = walk(machine);
    for (const type of ['B', 'NEXT', 'OFF', 'SHALLOW']) run.send(type);
    expect(run.state()).toEqual({ on: { b: 'p' } });
    for (const type of ['NEXT', 'OFF', 'DEEP']) run.send(type);
    expect(run.state()).toEqual({ on: { b: 'q' } });
  });

  test('tags and meta follow the state', () => {
    const machine = setup({}).createMachine({
      id: 'm',
      initial: 'a',
      states: { a: { tags: ['z', 'a'], meta: { pawl: { tokens: 5 } }, on: { GO: 'b' } }, b: { tags: 'b' } },
    });
    const run = walk(machine);
    expect(run.snapshot.hasTag('z')).toBe(true);
    expect(run.snapshot.getMeta()).toEqual({ 'm.a': { pawl: { tokens: 5 } } });
    run.send('GO');
    expect([...run.snapshot.tags]).toEqual(['b']);
  });

  test('a final state gives the output, stops every child and takes nothing more', () => {
    const machine = base.createMachine({
      id: 'm',
      context: { n: 3 },
      entry: spawnChild('job', { id: 'background' }),
      initial: 'a',
      on: { END: { actions: emit({ type: 'late' } as never) } },
      states: {
        a: { invoke: { src: 'other', id: 'o' }, after: { 9: 'z' }, on: { END: 'z' } },
        z: { type: 'final', output: ({ context }) => context.n },
      },
      output: ({ event }) => ({ result: (event as unknown as { output: number }).output }),
    });
    const run = walk(machine);
    expect(run.send('END').effects).toEqual([
      { kind: 'stop', invocationId: '1.1' },
      { kind: 'stop', invocationId: '1.0' },
      { kind: 'disarm', timerId: 'xstate.after.9.m.a' },
    ]);
    expect(run.snapshot).toMatchObject({ status: 'done', output: { result: 3 } });
    expect(run.send('END').applied).toBe(false);
  });

  test('guards combine, also over states', () => {
    const machine = setup({
      guards: { big: (_, params: { min: number }) => params.min < 5, no: () => false },
    }).createMachine({
      id: 'm',
      initial: 'a',
      states: { a: { on: { X: 'b' } }, b: {} },
      on: {
        AND: { guard: and([{ type: 'big', params: { min: 1 } }, not('no')]), actions: emit({ type: 'and' } as never) },
        OR: { guard: or(['no', stateIn('#m.b')]), actions: emit({ type: 'or' } as never) },
      },
    });
    const run = walk(machine);
    expect(run.send('AND').applied).toBe(true);
    expect(run.send('OR').applied).toBe(false);
    run.send('X');
    expect(run.send('OR').applied).toBe(true);
  });
});

describe('what is not applied', () => {
  test.each([
    'UNKNOWN',
    'FORBIDDEN',
    'GUARDED',
    '*',
    'xstate.stop',
    'xstate.init',
    'xstate.done.actor.j',
    'xstate.error.actor.j',
  ])('%s leaves the very same snapshot', (type) => {
    const machine = setup({ actors: { job: fakeTool('job') } }).createMachine({
      id: 'm',
      invoke: { src: 'job', id: 'j', onDone: '.b' },
      initial: 'a',
      on: { FORBIDDEN: '.b' },
      states: { a: { on: { FORBIDDEN: undefined, GUARDED: { guard: () => false, target: 'b' } } }, b: {} },
    });
    const run = walk(machine);
    const before = run.snapshot;
    expect(run.send(type)).toEqual({ snapshot: before, effects: [], applied: false });
    expect(run.snapshot).toBe(before);
  });

  test("a refusing '*' does not swallow the completion that a parent waits for", () => {
    const machine = setup({ actors: { job: fakeTool('job') } }).createMachine({
      id: 'm',
      initial: 'p',
      states: {
        p: {
          invoke: { src: 'job', id: 'j', onDone: 'q' },
          on: { GO: 'q' },
          initial: 'x',
          states: { x: { on: { '*': undefined } } },
        },
        q: {},
      },
    });
    const run = walk(machine);
    expect(run.send('GO').applied).toBe(false);
    run.done('j');
    expect(run.state()).toBe('q');
  });
});
