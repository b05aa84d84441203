import { assign, setup } from 'xstate';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/json.ts';
import { createDurableMachine } from '../../src/machines/durable-machine.ts';
import { chainDigest, restoreSnapshot, toMachineState } from '../../src/machines/snapshot.ts';
import { completionStep, eventStep } from '../../src/machines/step.ts';
import type { Invocation, Json, MachineState } from '../../src/records.ts';
import { fakeTool, walk, type Walk } from './machines.ts';

interface Context {
  n: number;
  shared: { deep: number[] };
  same: { deep: number[] };
}

const machine = setup({
  types: {} as { context: Context; events: { type: string } },
  actors: { job: fakeTool('job') },
}).createMachine({
  id: 'm',
  context: () => {
    const shared = { deep: [1] };
    return { n: 0, shared, same: shared };
  },
  type: 'parallel',
  states: {
    one: {
      initial: 'a',
      states: {
        a: { on: { GO: 'p' }, tags: ['z', 'y'] },
        p: {
          initial: 'x',
          on: { OUT: 'a' },
          states: {
            x: { on: { NEXT: 'y' } },
            y: { invoke: { src: 'job', id: 'job', onDone: 'x' } },
            h: { type: 'history', history: 'deep' },
          },
        },
      },
      on: { BACK: '.p.h' },
    },
    two: { initial: 'c', states: { c: { on: { ADD: { actions: assign({ n: ({ context }) => context.n + 1 }) } } } } },
  },
});

const invocation = (invocationId: string, id = 'job', src = 'job'): Invocation => ({
  invocationId,
  id,
  src,
  kind: 'tool',
  input: null,
  startedAtMs: 0,
});

function moved(...types: string[]): Walk {
  const run = walk(machine);
  for (const type of types) run.send(type);
  return run;
}

const stored = (run: Walk) => JSON.parse(JSON.stringify(toMachineState(run.machine, run.snapshot))) as MachineState;

describe('the stored state', () => {
  test('is strict JSON with history as ids and sorted tags', () => {
    expect(stored(moved())).toMatchObject({
      value: { one: 'a', two: 'c' },
      tags: ['y', 'z'],
      status: 'active',
      output: null,
      error: null,
      history: {},
    });
    expect(stored(moved('GO', 'NEXT', 'OUT'))).toMatchObject({ history: { 'm.one.p.h': ['m.one.p.y'] } });
  });

  test('shares the frozen context of the snapshot', () => {
    const run = moved('ADD');
    expect(toMachineState(run.machine, run.snapshot).context).toBe(run.context());
    expect(Object.isFrozen((run.context() as Context).shared.deep)).toBe(true);
  });

  test('restores to what it was stored from: history, tags, children, final output and error', () => {
    const run = moved('GO', 'NEXT', 'OUT');
    const back = restoreSnapshot(run.machine, stored(run), {});
    expect(back.hasTag('z')).toBe(true);
    const step = eventStep(run.machine, back, { type: 'BACK' }, { runId: 'r', sequence: 9, atMs: 0 });
    expect(step.snapshot.value).toEqual({ one: { p: 'y' }, two: 'c' });
    const failed = walk(machine);
    for (const type of ['GO', 'NEXT']) failed.send(type);
    failed.fail('job', { code: 'TOOL_FAILED', message: 'no', details: { a: 1 } });
    expect(stored(failed)).toMatchObject({
      status: 'error',
      error: { code: 'TOOL_FAILED', message: 'no', details: { a: 1 } },
    });
    const again = restoreSnapshot(failed.machine, stored(failed), {});
    expect(toMachineState(failed.machine, again)).toEqual(stored(failed));
  });

  test('children stand in by their invocation and can be completed and stopped', () => {
    const run = moved('GO', 'NEXT');
    const back = restoreSnapshot(run.machine, stored(run), { '3.0': invocation('3.0') });
    const at = { runId: 'r', sequence: 4, atMs: 0 };
    expect(eventStep(run.machine, back, { type: 'OUT' }, at).effects).toEqual([{ kind: 'stop', invocationId: '3.0' }]);
    const done = completionStep(run.machine, back, { id: 'job', invocationId: '3.0' }, { output: 1 }, at);
    expect(done.snapshot.value).toEqual({ one: { p: 'x' }, two: 'c' });
    expect(done.snapshot.children).toEqual({});
  });

  test('a completion that waited beside the record is delivered, though its child is gone already', () => {
    const run = moved('GO', 'NEXT');
    const back = restoreSnapshot(run.machine, stored(run), {});
    const done = completionStep(
      run.machine,
      back,
      { id: 'job', invocationId: '3.0' },
      { output: 1 },
      { runId: 'r', sequence: 4, atMs: 0 },
    );
    expect(done.applied).toBe(true);
  });

  test('nothing in a context is taken for an actor reference', () => {
    const run = walk(machine);
    const state = { ...stored(run), context: { trick: { xstate$$type: 1, id: 'job' } } };
    expect(restoreSnapshot(run.machine, state, {}).context).toEqual(state.context);
  });

  test('the order of keys in the stored state does not matter', () => {
    const run = moved('GO');
    const state = stored(run);
    const flipped = { ...state, value: Object.fromEntries(Object.entries(state.value as object).toReversed()) as Json };
    expect(JSON.stringify(restoreSnapshot(run.machine, flipped, {}).value)).toBe(JSON.stringify(state.value));
  });
});

describe('what cannot be restored is RECORD_UNREADABLE', () => {
  const { machine: durable, ...run } = moved('GO', 'NEXT', 'OUT');
  const good = JSON.parse(JSON.stringify(toMachineState(durable, run.snapshot))) as MachineState;
  const CASES: [string, Partial<MachineState>, Record<string, Invocation>, RegExp][] = [
    ['an unknown state', { value: { one: 'gone', two: 'c' } }, {}, /"gone".* is unknown to machine 'm'/],
    ['half a state', { value: { one: 'a' } }, {}, /not a whole state/],
    ['a state that stops short', { value: { one: 'p', two: 'c' } }, {}, /not a whole state/],
    ['no state', { value: null }, {}, /is unknown/],
    [
      'a history of a state that is gone',
      { history: { 'm.one.p.h': ['m.one.p.gone'] } },
      {},
      /'m.one.p.gone' is unknown/,
    ],
    ['a history that is gone', { history: { 'm.gone': [] } }, {}, /'m.gone' is unknown/],
    ['a history that is none', { history: { 'm.one': ['m.one.a'] } }, {}, /is not a history state/],
    ['logic that is gone', {}, { '1.0': invocation('1.0', 'x', 'gone') }, /runs 'gone'/],
    ['two invocations of one id', {}, { '1.0': invocation('1.0'), '2.0': invocation('2.0') }, /two live invocations/],
  ];
  test.each(CASES)('%s', (_name, change, invocations, message) => {
    expect(() => restoreSnapshot(durable, { ...good, ...change }, invocations)).toThrow(
      expect.objectContaining({ code: 'RECORD_UNREADABLE', message: expect.stringMatching(message) as string }),
    );
  });

  test('ids and keys with dots are found', () => {
    const dotted = setup({}).createMachine({
      id: 'my.machine',
      initial: 'a.b',
      states: {
        'a.b': {
          initial: 'c',
          states: { c: { on: { N: 'd' } }, d: { id: 'the.end' }, h: { type: 'history' } },
          on: { OUT: 'e' },
        },
        e: { on: { IN: '#my\\.machine.a\\.b.h' } },
      },
    });
    const dottedRun = walk(dotted);
    for (const type of ['N', 'OUT']) dottedRun.send(type);
    const back = restoreSnapshot(
      dottedRun.machine,
      JSON.parse(JSON.stringify(toMachineState(dottedRun.machine, dottedRun.snapshot))) as MachineState,
      {},
    );
    expect(
      eventStep(dottedRun.machine, back, { type: 'IN' }, { runId: 'r', sequence: 4, atMs: 0 }).snapshot.value,
    ).toEqual({ 'a.b': 'd' });
  });
});

describe('the digest chain', () => {
  const record = (run: Walk, invocations: Record<string, Invocation> = {}) => ({
    machine: toMachineState(run.machine, run.snapshot),
    invocations,
  });

  test('starts from nothing and depends on every link', () => {
    const first = chainDigest('', null, record(moved()));
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    const before = record(moved());
    const second = chainDigest(first, before, record(moved('ADD')));
    expect(second).not.toBe(chainDigest('', before, record(moved('ADD'))));
    expect(second).not.toBe(chainDigest(first, before, record(moved('GO'))));
    expect(second).toBe(chainDigest(first, record(moved()), record(moved('ADD'))));
  });

  test('is the same for a warm snapshot, for one from JSON, and for sharing that JSON loses', () => {
    const run = walk(machine);
    const warm = [record(run)];
    for (const type of ['ADD', 'GO', 'ADD']) {
      run.send(type);
      warm.push(record(run));
    }
    const parsed = JSON.parse(JSON.stringify(warm)) as typeof warm;
    const chain = (records: typeof warm) =>
      records.reduce((digest, link, index) => chainDigest(digest, records[index - 1] ?? null, link), '');
    expect(chain(parsed)).toBe(chain(warm));
    expect(canonicalJson(parsed as unknown as Json)).toBe(canonicalJson(warm as unknown as Json));
  });

  test('sees value, context, history, status, output and who is invoked; not tags, inputs or times', () => {
    const run = moved();
    const base = record(run, { '1.0': invocation('1.0') });
    const link = (change: Partial<MachineState>, invocations = base.invocations) =>
      chainDigest('x', base, { machine: { ...base.machine, ...change }, invocations });
    const same = link({});
    expect(link({ tags: ['other'] })).toBe(same);
    expect(link({}, { '1.0': { ...invocation('1.0'), input: { other: 1 }, startedAtMs: 9, operationId: 'o' } })).toBe(
      same,
    );
    const others = [
      link({ value: 'v' }),
      link({ context: { n: 1 } }),
      link({ history: { h: ['x'] } }),
      link({ status: 'done' }),
      link({ output: 1 }),
      link({}, {}),
      link({}, { '1.0': invocation('1.0', 'other') }),
      link({}, { '1.0': invocation('1.0', 'job', 'other') }),
    ];
    expect(new Set([same, ...others]).size).toBe(others.length + 1);
  });

  test('does not depend on the order of keys, also of deleted ones', () => {
    const run = moved();
    const before = record(run);
    const contexts = [
      { b: 1, a: 2, keep: 1 },
      { a: 2, keep: 1, b: 1 },
    ];
    const digests = contexts.map((context) =>
      chainDigest(
        'x',
        { ...before, machine: { ...before.machine, context } },
        { ...before, machine: { ...before.machine, context: { keep: 1 } } },
      ),
    );
    expect(digests[0]).toBe(digests[1]);
  });
});

test('two machines made of one source have nothing in common', () => {
  const [one, other] = [createDurableMachine(machine), createDurableMachine(machine)];
  expect(one.prepared).not.toBe(other.prepared);
  expect(one.structure).toBe(other.structure);
});
