import {
  and,
  assign,
  cancel,
  emit,
  enqueueActions,
  forwardTo,
  log,
  not,
  or,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stateIn,
  stopChild,
} from 'xstate';
import { describe, expect, test } from 'vitest';
import { fakeTool, walk } from './machines.ts';

const base = setup({
  types: {} as { context: { n: number }; events: { type: string; n?: number } },
  actors: { job: fakeTool('payments.job'), other: fakeTool('other') },
  delays: { dynamic: ({ context }) => context.n * 1000 },
});

describe('children', () => {
  const machine = base.createMachine({
    id: 'm',
    context: { n: 2 },
    initial: 'idle',
    states: {
      idle: {
        on: {
          GO: 'work',
          SPAWN: { actions: spawnChild('other', { id: ({ event }) => `kid-${event.n}`, input: { fixed: true } }) },
          STOP: { actions: stopChild('kid-1') },
          TELL: { actions: sendTo('kid-1', ({ context }) => ({ type: 'PING', n: context.n })) },
          TELL_LATER: { actions: sendTo('kid-1', { type: 'PING' }, { delay: 50, id: 'ping' }) },
          FORWARD: { actions: forwardTo('kid-1') },
          UP: { actions: sendParent({ type: 'NEWS' }) },
          SELF: { actions: sendTo(({ self }) => self, { type: 'AGAIN' }) },
          FLASH: {
            actions: [spawnChild('job', { id: 'brief' }), sendTo('brief', { type: 'HELLO' }), stopChild('brief')],
          },
        },
      },
      work: {
        entry: sendTo('job', { type: 'HELLO' }),
        invoke: {
          src: 'job',
          id: 'job',
          input: ({ context, event }: { context: { n: number }; event: { type: string } }) => ({
            n: context.n,
            by: event.type,
          }),
          onDone: 'done',
        },
        on: { AGAIN: { target: 'work', reenter: true }, SAME: 'work', LEAVE: 'idle' },
      },
      done: {},
    },
  });

  test('an invoke starts with its input, before the send that its own entry makes', () => {
    const { effects } = walk(machine).send('GO');
    expect(effects).toEqual([
      { kind: 'start', invocationId: '2.0', id: 'job', src: 'job', logic: 'tool', input: { n: 2, by: 'GO' } },
      { kind: 'send', to: '2.0', event: { type: 'HELLO' } },
    ]);
  });

  test('re-entering stops the old invocation and starts a new one; a self-transition does neither', () => {
    const run = walk(machine);
    run.send('GO');
    expect(run.send('SAME')).toMatchObject({ applied: true, effects: [] });
    expect(run.send('AGAIN').effects).toMatchObject([
      { kind: 'stop', invocationId: '2.0' },
      { kind: 'start', invocationId: '4.0' },
      { kind: 'send', to: '4.0' },
    ]);
  });

  test('leaving stops; a completion does not stop what it settles', () => {
    const run = walk(machine);
    run.send('GO');
    expect(run.send('LEAVE').effects).toEqual([{ kind: 'stop', invocationId: '2.0' }]);
    run.send('GO');
    expect(run.done('job', { ok: true })).toMatchObject({ applied: true, effects: [] });
    expect(run.state()).toBe('done');
  });

  test('spawned children have dynamic ids, are told things, and are stopped by their invocation', () => {
    const run = walk(machine);
    expect(run.send('SPAWN', { n: 1 }).effects).toEqual([
      { kind: 'start', invocationId: '2.0', id: 'kid-1', src: 'other', logic: 'tool', input: { fixed: true } },
    ]);
    expect(run.send('TELL').effects).toEqual([{ kind: 'send', to: '2.0', event: { type: 'PING', n: 2 } }]);
    expect(run.send('FORWARD', { n: 9 }).effects).toEqual([
      { kind: 'send', to: '2.0', event: { type: 'FORWARD', n: 9 } },
    ]);
    expect(run.send('TELL_LATER').effects).toEqual([
      { kind: 'arm', timerId: 'ping', timer: 'send', delayMs: 50, event: { type: 'PING' }, to: '2.0' },
    ]);
    expect(run.send('STOP').effects).toEqual([{ kind: 'stop', invocationId: '2.0' }]);
    expect(run.send('STOP')).toMatchObject({ applied: true, effects: [] });
  });

  test('spawning under the id of a live child leaves that one first', () => {
    const run = walk(machine);
    run.send('SPAWN', { n: 1 });
    expect(run.send('SPAWN', { n: 1 }).effects).toMatchObject([
      { kind: 'stop', invocationId: '2.0' },
      { kind: 'start', invocationId: '3.0' },
    ]);
  });

  test('what starts and stops in one step vanishes, and so does what is sent to it', () => {
    expect(walk(machine).send('FLASH')).toMatchObject({ applied: true, effects: [] });
  });

  test('parent and self are targets', () => {
    const run = walk(machine);
    expect(run.send('UP').effects).toEqual([{ kind: 'send', to: 'parent', event: { type: 'NEWS' } }]);
    expect(run.send('SELF').effects).toEqual([{ kind: 'send', to: 'self', event: { type: 'AGAIN' } }]);
  });

  test('a machine used as an actor starts as a child, and none of its code runs', () => {
    let ran = 0;
    const child = setup({}).createMachine({
      id: 'child',
      context: () => ({ ran: ++ran }),
      initial: 'a',
      states: { a: {} },
    });
    const parent = setup({ actors: { child } }).createMachine({
      id: 'p',
      invoke: { src: 'child', id: 'c', input: { n: 1 } as never },
    });
    expect(walk(parent).initial.effects).toEqual([
      { kind: 'start', invocationId: '1.0', id: 'c', src: 'child', logic: 'child', input: { n: 1 } },
    ]);
    expect(ran).toBe(0);
  });
});

describe('completions', () => {
  const machine = base.createMachine({
    id: 'm',
    context: { n: 0 },
    type: 'parallel',
    states: {
      a: { initial: 'w', states: { w: { invoke: { src: 'job', id: 'job', onDone: 'ok' } }, ok: {} } },
      b: {
        initial: 'w',
        states: {
          w: {
            invoke: {
              src: 'other',
              id: 'other',
              onError: {
                target: 'bad',
                actions: assign({ n: ({ event }) => Number((event.error as { details: number }).details) }),
              },
            },
          },
          bad: {},
        },
      },
    },
  });

  test('an error arrives as the fault it is', () => {
    const run = walk(machine);
    run.fail('other', { code: 'TOOL_FAILED', message: 'no', details: 7 });
    expect(run.state()).toEqual({ a: 'w', b: 'bad' });
    expect(run.context()).toEqual({ n: 7 });
  });

  test('a done that nobody takes changes nothing but the children', () => {
    const run = walk(machine);
    const before = run.snapshot;
    const step = run.done('other');
    expect(step).toMatchObject({ applied: false, effects: [] });
    expect(Object.keys(run.snapshot.children)).toEqual(['job']);
    expect(Object.keys(before.children)).toEqual(['job', 'other']);
  });

  test('an error that nobody takes ends the machine and stops the other children', () => {
    const run = walk(machine);
    expect(run.fail('job')).toMatchObject({ applied: false, effects: [{ kind: 'stop', invocationId: '1.1' }] });
    expect(run.snapshot.status).toBe('error');
    expect(run.snapshot.error).toEqual({ code: 'TOOL_FAILED', message: 'no' });
  });

  test('a completion of an earlier entry is not delivered to a later one', () => {
    const once = base.createMachine({
      id: 'm',
      context: { n: 0 },
      initial: 'w',
      states: {
        w: { invoke: { src: 'job', id: 'job', onDone: 'ok' }, on: { RE: { target: 'w', reenter: true } } },
        ok: {},
      },
    });
    const run = walk(once);
    run.send('RE');
    const stale = run.complete({ id: 'job', invocationId: '1.0' }, { output: null });
    expect(stale).toMatchObject({ applied: false, effects: [] });
    expect(run.state()).toBe('w');
    run.done('job');
    expect(run.state()).toBe('ok');
  });
});

describe('timers', () => {
  const machine = base.createMachine({
    id: 'm',
    context: { n: 2 },
    initial: 'wait',
    states: {
      wait: {
        after: { 1000: 'late', dynamic: { target: 'late' } },
        on: {
          LATER: { actions: raise({ type: 'X' }, { delay: 5_000_000_000, id: 'x' }) },
          UNNAMED: { actions: [raise({ type: 'X' }, { delay: 0 }), raise({ type: 'X' }, { delay: 1 })] },
          CANCEL: { actions: cancel('x') },
          BOTH: { actions: [raise({ type: 'X' }, { delay: 1, id: 'x' }), cancel('x')] },
          TWICE: {
            actions: [raise({ type: 'X' }, { delay: 1, id: 'x' }), raise({ type: 'Y' }, { delay: 2, id: 'x' })],
          },
          THROUGH: 'through',
          RE: { target: 'wait', reenter: true },
        },
      },
      through: { after: { 10: 'late' }, invoke: { src: 'job', id: 'j' }, always: 'late' },
      late: {},
    },
  });
  const after = (delay: number | string, delayMs: number) => ({
    kind: 'arm',
    timerId: `xstate.after.${delay}.m.wait`,
    timer: 'after',
    delayMs,
    event: { type: `xstate.after.${delay}.m.wait` },
  });

  test('after arms on entry, and on re-entry disarms and arms again', () => {
    const run = walk(machine);
    expect(run.initial.effects).toEqual([after(1000, 1000), after('dynamic', 2000)]);
    expect(run.send('RE').effects).toEqual([
      { kind: 'disarm', timerId: 'xstate.after.1000.m.wait' },
      { kind: 'disarm', timerId: 'xstate.after.dynamic.m.wait' },
      after(1000, 1000),
      after('dynamic', 2000),
    ]);
  });

  test('a delayed raise has its own id or one that is new at each step; long delays stay long', () => {
    const run = walk(machine);
    expect(run.send('LATER').effects).toEqual([
      { kind: 'arm', timerId: 'x', timer: 'raise', delayMs: 5_000_000_000, event: { type: 'X' } },
    ]);
    expect(run.send('UNNAMED').effects).toMatchObject([
      { timerId: 'X.3.0', delayMs: 0 },
      { timerId: 'X.3.1', delayMs: 1 },
    ]);
    expect(run.send('UNNAMED').effects).toMatchObject([{ timerId: 'X.4.0' }, { timerId: 'X.4.1' }]);
  });

  test('cancel disarms, also what an earlier step armed under an id that this step arms and cancels', () => {
    const run = walk(machine);
    expect(run.send('CANCEL').effects).toEqual([{ kind: 'disarm', timerId: 'x' }]);
    expect(run.send('BOTH').effects).toEqual([{ kind: 'disarm', timerId: 'x' }]);
    expect(run.send('TWICE').effects).toMatchObject([{ kind: 'arm', timerId: 'x', event: { type: 'Y' } }]);
  });

  test('a state entered and left in one step arms and starts nothing', () => {
    expect(
      walk(machine)
        .send('THROUGH')
        .effects.map(({ kind }) => kind),
    ).toEqual(['disarm', 'disarm']);
  });
});

describe('other actions', () => {
  const machine = setup({
    types: {} as { context: { n: number }; events: { type: string } },
    actions: { add: assign({ n: ({ context }, params: { by: number }) => context.n + params.by }) },
  }).createMachine({
    id: 'm',
    context: { n: 0 },
    on: {
      EMIT: { actions: emit(({ context }) => ({ type: 'seen', n: context.n })) },
      LOG: { actions: [log(({ context }) => context.n, 'count'), log(undefined as never)] },
      NAMED: { actions: { type: 'add', params: { by: 5 } } },
      RAISE: { actions: [raise({ type: 'NAMED' }), raise({ type: 'EMIT' })] },
      QUEUE: {
        actions: enqueueActions(({ enqueue, check, context }) => {
          if (check(() => context.n === 0)) enqueue.assign({ n: 1 });
          enqueue({ type: 'add', params: { by: 10 } });
          enqueue.raise({ type: 'X' }, { delay: 3 });
          enqueue.emit({ type: 'queued' } as never);
        }),
      },
      NOTHING: { actions: enqueueActions(() => {}) },
    },
  });

  test('emit and log are data; a log without a value is null', () => {
    const run = walk(machine);
    expect(run.send('EMIT').effects).toEqual([{ kind: 'emit', event: { type: 'seen', n: 0 } }]);
    expect(run.send('LOG').effects[0]).toEqual({ kind: 'log', label: 'count', value: 0 });
  });

  test('an undelayed raise is part of the step and no effect', () => {
    const run = walk(machine);
    expect(run.send('RAISE').effects).toEqual([{ kind: 'emit', event: { type: 'seen', n: 5 } }]);
    expect(run.context()).toEqual({ n: 5 });
  });

  test('enqueueActions gives the effects of what it enqueues, and is applied when it enqueues nothing', () => {
    const run = walk(machine);
    expect(run.send('QUEUE').effects.map(({ kind }) => kind)).toEqual(['arm', 'emit']);
    expect(run.context()).toEqual({ n: 11 });
    const before = run.snapshot;
    expect(run.send('NOTHING')).toEqual({ snapshot: before, effects: [], applied: true });
  });
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
