import {
  assign,
  cancel,
  emit,
  enqueueActions,
  forwardTo,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
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
