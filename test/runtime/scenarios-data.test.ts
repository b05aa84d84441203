/** Failures people reported on other systems: what is stored and read back, events that come early or wrong, timers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assign, fromPromise, setup } from 'xstate';
import { z } from 'zod';
import { canonicalJson } from '../../src/json.ts';
import { defineAgent } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import type { Json } from '../../src/records.ts';
import { simulatedClock } from '../../src/testing/simulated-clock.ts';
import { tool } from '../../src/tools/tool.ts';
import { chargeTool, threeStepAgent } from './agents.ts';
import { Provider } from './provider.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const HOUR_MS = 3_600_000;

test('R13 a promise started by the machine itself is refused at registration, with what to write instead', () => {
  const machine = setup({ actors: { pay: fromPromise(async () => 1) } }).createMachine({
    id: 'promise',
    initial: 'paying',
    states: { paying: { invoke: { src: 'pay', onDone: 'done' } }, done: { type: 'final' } },
  });
  const events = defineEvents({});
  expect(() => defineAgent({ name: 'p', version: 1, machine, events, input: z.object({}) })).toThrow(/tool\(/);
});

/** Keeps whatever it is given: the event's payload, and what a tool answered to it. */
function keepingAgent(seen: Json[]) {
  const anything = z.looseObject({});
  const events = defineEvents({ KEEP: anything, PUT: z.object({ field: z.string(), value: z.json() }) });
  const echo = tool({
    name: 'echo',
    version: '1',
    effect: 'read',
    input: anything,
    output: anything,
    execute: async ({ input }) => {
      seen.push(input as Json);
      return input;
    },
  });
  const machine = setup({
    types: {} as {
      context: { kept: Json; fields: Record<string, Json> };
      input: { fields: Record<string, Json> };
      events: EventsOf<typeof events>;
    },
    actors: { echo },
  }).createMachine({
    id: 'keeping',
    initial: 'idle',
    context: ({ input }) => ({ kept: null, fields: input.fields }),
    states: {
      idle: {
        on: {
          KEEP: 'asking',
          PUT: {
            actions: assign({ fields: ({ context, event }) => ({ ...context.fields, [event.field]: event.value }) }),
          },
        },
      },
      asking: {
        invoke: {
          src: 'echo',
          input: ({ event }) => {
            const { type: _type, ...payload } = event as { type: string };
            return payload;
          },
          onDone: { target: 'idle', actions: assign({ kept: ({ event }) => event.output as Json }) },
        },
      },
    },
  });
  const input = z.object({ fields: z.record(z.string(), z.json()) });
  return defineAgent({ name: 'keeping', version: 1, machine, events, input });
}

describe.each(STORES)('on $name', (kind) => {
  test('R26 what an event and a receipt carry is read back byte for byte, whatever fields they have', async () => {
    const seen: Json[] = [];
    const world = openWorld(kind, [keepingAgent(seen)]);
    const { pawl } = world.spawn();
    await pawl.start('keeping', { runId: 'r1', input: { fields: {} } });
    const payloads = fc.dictionary(
      fc.string({ minLength: 1, maxLength: 12 }).filter((key) => key !== 'type' && key !== '__proto__'),
      fc.jsonValue({ maxDepth: 3 }),
      { maxKeys: 6 },
    );
    const check = async (payload: { [key: string]: unknown }): Promise<void> => {
      const verdict = await pawl.send('r1', { ...payload, type: 'KEEP' });
      expect(verdict.verdict).toBe('applied');
      await pawl.wait('r1', { until: (view) => view.state === 'idle', timeoutMs: 5_000 });
      const view = await pawl.view('r1');
      expect(canonicalJson(view.context.kept)).toBe(canonicalJson(payload as Json));
      expect(canonicalJson(seen.at(-1) ?? null)).toBe(canonicalJson(payload as Json));
    };
    await fc.assert(fc.asyncProperty(payloads, check), {
      numRuns: 60,
      ...(process.env['SEED'] ? { seed: Number(process.env['SEED']) } : {}),
    });
    expect(await pawl.verify('r1')).toMatchObject({ ok: true });
    await world.close();
  });

  test('R38 of 50 fields one changes at a time, 100 times: each load gives all of them', async () => {
    const world = openWorld(kind, [keepingAgent([])]);
    const { pawl } = world.spawn();
    const fields: Record<string, Json> = Object.fromEntries(
      Array.from({ length: 50 }, (_, index) => [`f${index}`, index]),
    );
    await pawl.start('keeping', { runId: 'r1', input: { fields } });
    for (let change = 0; change < 100; change++) {
      const field = `f${(change * 7) % 50}`;
      fields[field] = { change, before: fields[field] ?? null };
      await pawl.send('r1', { type: 'PUT', field, value: fields[field] });
      expect((await pawl.view('r1')).context.fields).toEqual(fields);
    }
    expect(await pawl.verify('r1')).toMatchObject({ ok: true, sequence: 101 });
    await world.close();
  });

  test.each([
    ['a Map', () => new Map([[1, 2]]), 'context.value'],
    ['a Date', () => new Date(0), 'context.value'],
    ['a bigint', () => 1n, 'context.value'],
    ['an instance', () => new URL('http://localhost'), 'context.value'],
    ['NaN', () => [1, { deep: Number.NaN }], 'context.value[1].deep'],
    ['undefined in a list', () => ({ list: [undefined] }), 'context.value.list[0]'],
    ['a cycle', cyclic, 'context.value.self'],
  ])('R45 %s in the context is refused with its path, and the run is as before', async (_what, make, path) => {
    const events = defineEvents({ SET: z.object({}), SAFE: z.object({}) });
    const machine = setup({
      types: {} as { context: { value: unknown }; events: EventsOf<typeof events> },
    }).createMachine({
      id: 'setting',
      initial: 'idle',
      context: { value: 'safe' },
      states: {
        idle: {
          on: { SET: { actions: assign({ value: () => make() }) }, SAFE: { actions: assign({ value: 'still' }) } },
        },
      },
    });
    const agent = defineAgent({ name: 'setting', version: 1, machine, events, input: z.object({}) });
    const world = openWorld(kind, [agent]);
    const { pawl } = world.spawn();
    await pawl.start('setting', { runId: 'r1', input: {} });
    const verdict = await pawl.send('r1', { type: 'SET' });
    expect(verdict).toMatchObject({ verdict: 'refused', reason: 'step_threw', sequence: 1 });
    const messages: unknown[] = [];
    for await (const entry of pawl.history('r1')) if (entry.kind === 'refused') messages.push(entry['message']);
    expect(messages).toEqual([expect.stringContaining(path)]);
    expect(await pawl.view('r1')).toMatchObject({ context: { value: 'safe' }, sequence: 1 });
    expect(await pawl.send('r1', { type: 'SAFE' })).toMatchObject({ verdict: 'applied', sequence: 2 });
    await world.close();
  });

  test('R62 an event sent before its state is reached is kept and applied when it is', async () => {
    const provider = new Provider();
    const agent = threeStepAgent({ charge: chargeTool(provider), mail: chargeTool(provider, { name: 'mail' }) });
    const world = openWorld(kind, [agent]);
    const { pawl } = world.spawn();
    const starting = pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    await pawl.send('r1', { type: 'LATER', note: 'before start returned' }).catch(() => {});
    await starting;
    expect(await pawl.send('r1', { type: 'LATER', note: 'early' })).toMatchObject({ verdict: 'deferred' });
    expect((await pawl.view('r1')).inbox.deferred.length).toBeGreaterThan(0);
    expect(await pawl.send('r1', { type: 'NOISE' })).toMatchObject({ verdict: 'dropped' });
    await pawl.send('r1', { type: 'GO', amount: 10 });
    const view = await pawl.wait('r1', { timeoutMs: 5_000 });
    expect(view.output?.notes.at(-1)).toBe('early');
    // One that never becomes legal expires with the run, in the ledger.
    await pawl.start('threeStep', { runId: 'r2', input: { order: 'o2', amount: 10 } });
    await pawl.send('r2', { type: 'LATER', note: 'never' }, { eventId: 'e-never' });
    await pawl.send('r2', { type: 'CANCEL', by: 'ann' });
    await pawl.wait('r2', { timeoutMs: 5_000 });
    const dropped: unknown[] = [];
    for await (const entry of pawl.history('r2'))
      if (entry.kind === 'dropped') dropped.push([entry['eventId'], entry['reason']]);
    expect(dropped).toEqual([['e-never', 'run_final']]);
    await world.close();
  });

  test('R65 a misspelt, an illegal and an ill-formed event are told apart, answered and recorded', async () => {
    const provider = new Provider();
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
    const { pawl } = world.spawn();
    await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    // @ts-expect-error — a misspelt type does not compile
    const misspelt = await pawl.send('r1', { type: 'G0', amount: 1 });
    // @ts-expect-error — nor does a payload of the wrong type
    const illFormed = await pawl.send('r1', { type: 'GO', amount: 'ten' });
    const guarded = await pawl.send('r1', { type: 'GO', amount: 5_000 });
    const allowed = ['GO', 'CANCEL'];
    expect(misspelt).toMatchObject({ verdict: 'refused', reason: 'unknown_event', allowed });
    expect(illFormed).toMatchObject({ verdict: 'refused', reason: 'invalid_payload', allowed });
    expect(guarded).toMatchObject({ verdict: 'refused', reason: 'guard_rejected', allowed });
    await pawl.send('r1', { type: 'CANCEL', by: 'ann' });
    expect(await pawl.send('r1', { type: 'GO', amount: 1 })).toMatchObject({ verdict: 'refused', reason: 'run_final' });
    const reasons: unknown[] = [];
    for await (const entry of pawl.history('r1')) if (entry.kind === 'refused') reasons.push(entry['reason']);
    expect(reasons).toEqual(['unknown_event', 'invalid_payload', 'guard_rejected', 'run_final']);
    await world.close();
  });

  test('R66 a delay of a day fires once at its absolute time, whatever restarts; leaving cancels, re-entry renews', async () => {
    const events = defineEvents({ LEAVE: z.object({}), BACK: z.object({}), AGAIN: z.object({}) });
    const machine = setup({
      types: {} as { context: { fired: number }; events: EventsOf<typeof events> },
    }).createMachine({
      id: 'waiting',
      initial: 'waiting',
      context: { fired: 0 },
      states: {
        waiting: {
          after: {
            [24 * HOUR_MS]: { target: 'expired', actions: assign({ fired: ({ context }) => context.fired + 1 }) },
          },
          on: { LEAVE: 'away', AGAIN: { target: 'waiting', reenter: true } },
        },
        away: { on: { BACK: 'waiting' } },
        expired: {},
      },
    });
    const agent = defineAgent({ name: 'waiting', version: 1, machine, events, input: z.object({}) });
    const startMs = 1_800_000_000_000;

    // Restarted every hour, also past the hour at which it is due.
    const clock = simulatedClock(startMs);
    const world = openWorld(kind, [agent], clock);
    let { pawl } = world.spawn();
    const soon = async <T>(call: Promise<T>): Promise<T> => {
      await clock.advance(1_000);
      return call;
    };
    await soon(pawl.start('waiting', { runId: 'r1', input: {} }));
    for (let hour = 0; hour < 23; hour++) {
      await clock.advance(HOUR_MS);
      expect((await pawl.view('r1')).state).toBe('waiting');
      pawl = world.spawn().pawl;
    }
    await clock.advance(HOUR_MS - 60_000);
    expect((await pawl.view('r1')).state).toBe('waiting');
    await clock.advance(120_000);
    expect(await pawl.view('r1')).toMatchObject({ state: 'expired', context: { fired: 1 } });
    await clock.advance(48 * HOUR_MS);
    expect(await pawl.view('r1')).toMatchObject({ state: 'expired', context: { fired: 1 }, timers: [] });

    // Left before it is due, and entered again: a new delay. Re-entered: a new one too.
    await soon(pawl.start('waiting', { runId: 'r2', input: {} }));
    await clock.advance(23 * HOUR_MS);
    await soon(pawl.send('r2', { type: 'LEAVE' }));
    await clock.advance(2 * HOUR_MS);
    expect(await pawl.view('r2')).toMatchObject({ state: 'away', timers: [] });
    await soon(pawl.send('r2', { type: 'BACK' }));
    await clock.advance(12 * HOUR_MS);
    await soon(pawl.send('r2', { type: 'AGAIN' }));
    await clock.advance(23 * HOUR_MS);
    expect((await pawl.view('r2')).state).toBe('waiting');
    await clock.advance(2 * HOUR_MS);
    expect(await pawl.view('r2')).toMatchObject({ state: 'expired', context: { fired: 1 } });

    // Nobody works when it is due: it fires as soon as somebody does.
    const late = openWorld(kind, [agent], clock);
    const idle = late.spawn({ idle: true }).pawl;
    await soon(idle.start('waiting', { runId: 'r3', input: {} }));
    await clock.advance(25 * HOUR_MS);
    late.spawn();
    await clock.advance(2_000);
    expect(await idle.view('r3')).toMatchObject({ state: 'expired', context: { fired: 1 } });
    await world.test.remove();
    await late.test.remove();
  });
});

function cyclic(): unknown {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
}
