/** Failures people reported on other systems: duplicated, lost and forgotten effects. */
import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { z } from 'zod';
import { PawlError } from '../../src/errors.ts';
import { defineAgent } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import type { Store } from '../../src/persistence/store.ts';
import { simulatedClock } from '../../src/testing/simulated-clock.ts';
import { chargeTool, threeStepAgent } from './agents.ts';
import { Provider } from './provider.ts';
import { STORES } from './stores.ts';
import { openWorld, type World } from './world.ts';

type AnyWorld = World<ReturnType<typeof threeStepAgent>>;

/** A store that breaks at one of its calls: before it is applied, after it, or by never answering again. */
function breakAt(store: Store, at: (method: string, args: unknown[]) => 'before' | 'after' | 'die' | null): Store {
  let dead = false;
  const lost = (method: string): PawlError => new PawlError('STORE_UNREACHABLE', `${method}: connection reset`);
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      if (property === 'watch' || property === 'read') return value.bind(target) as unknown;
      return async (...args: unknown[]) => {
        if (dead) return new Promise(() => {});
        const how = at(String(property), args);
        if (how === 'before') throw lost(String(property));
        const result: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
        if (how === 'after') throw lost(String(property));
        if (how === 'die') {
          dead = true;
          return new Promise(() => {});
        }
        return result;
      };
    },
  });
}

async function startAndGo(world: AnyWorld, pawl: ReturnType<AnyWorld['spawn']>['pawl']): Promise<void> {
  await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
  await pawl.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
}

describe.each(STORES)('on $name', (kind) => {
  test.concurrent.each(Array.from({ length: 10 }, (_, index) => index))(
    'R01 a worker that dies around its store call %i leaves ledger, record and receipts of one sequence',
    async (index) => {
      for (const how of ['before', 'die'] as const) {
        const provider = new Provider();
        const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
        const outside = world.spawn({ freezeAt: { point: 'B0', tool: 'never' } }).pawl;
        let calls = -1;
        let died: () => void = () => {};
        const dead = new Promise<void>((resolve) => {
          died = resolve;
        });
        let over = false;
        const store = breakAt(world.test.again(), (method) => {
          if (method === 'close') return null;
          calls++;
          if (over || calls < index) return null;
          over = true;
          died();
          return how;
        });
        await startAndGo(world, outside);
        world.spawn({ store, leave: true });
        await Promise.race([dead, outside.wait('r1', { timeoutMs: 5_000 }).catch(() => {})]);
        const second = world.spawn();
        const view = await second.pawl.wait('r1', { timeoutMs: 10_000 });
        expect(view).toMatchObject({ status: 'done', output: { charge: 'refund-charge:o1' } });
        expect(provider.effectsOf('charge:o1')).toBe(1);
        let last = 0;
        for await (const entry of second.pawl.history('r1'))
          last = entry.kind === 'transitioned' ? entry.sequence : last;
        expect(last).toBe(view.sequence);
        expect(await second.pawl.verify('r1')).toMatchObject({ ok: true });
        await world.close();
      }
    },
  );

  test.each(['before', 'after'] as const)('R03 the receipt commit is cut off %s it was applied', async (when) => {
    const provider = new Provider();
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
    let broken = 0;
    const store = breakAt(world.test.again(), (method, args) => {
      const { receipts = [] } = (args[0] ?? {}) as { receipts?: unknown[] };
      if (method !== 'commit' || receipts.length === 0 || broken >= 2) return null;
      broken++;
      return when;
    });
    const { pawl } = world.spawn({ store });
    await startAndGo(world, pawl);
    const view = await pawl.wait('r1', { timeoutMs: 10_000 });
    expect(broken).toBe(2);
    expect(view).toMatchObject({ status: 'done', sequence: 4 });
    expect(provider.effectsOf('charge:o1')).toBe(1);
    expect(await pawl.verify('r1')).toMatchObject({ ok: true });
    await world.close();
  });

  test('R05 a start is answered only after it is stored, and the same id gives the same run', async () => {
    const provider = new Provider();
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
    const { pawl } = world.spawn();
    const one = await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    const elsewhere = world.test.again();
    expect((await elsewhere.load('r1'))?.record?.runId).toBe('r1');
    const other = await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    expect(other.createdAtMs).toBe(one.createdAtMs);
    await elsewhere.close();
    await world.close();
  });

  test('R06 the chart asks for the same payment again while the first is unknown: it joins, one effect', async () => {
    const provider = new Provider();
    provider.modes.push('acceptThenReset');
    provider.queries.push('down', 'down', 'down');
    const events = defineEvents({ AGAIN: z.object({}) });
    const machine = setup({
      types: {} as { context: Record<string, never>; input: Record<string, never>; events: EventsOf<typeof events> },
      actors: { charge: chargeTool(provider) },
    }).createMachine({
      id: 'again',
      initial: 'charging',
      context: {},
      states: {
        charging: {
          invoke: { src: 'charge', input: () => ({ order: 'o1', amount: 10 }), onDone: 'done', onError: 'failed' },
          on: { AGAIN: { target: 'charging', reenter: true } },
        },
        done: { type: 'final' },
        failed: { type: 'final' },
      },
    });
    const agent = defineAgent({ name: 'again', version: 1, machine, events, input: z.object({}) });
    const world = openWorld(kind, [agent]);
    const { pawl } = world.spawn();
    await pawl.start('again', { runId: 'r1', input: {} });
    await pawl.wait('r1', { until: (view) => view.openOperations[0]?.status === 'unknown', timeoutMs: 5_000 });
    expect(await pawl.send('r1', { type: 'AGAIN' })).toMatchObject({ verdict: 'applied' });
    expect(await pawl.wait('r1', { timeoutMs: 10_000 })).toMatchObject({ status: 'done', state: 'done' });
    expect([provider.effects.length, provider.requests]).toEqual([1, 1]);
    expect(await pawl.verify('r1')).toMatchObject({ ok: true });
    await world.close();
  });

  test('R10 a worker that dies after the last commit leaves nothing to do: no tool is called again', async () => {
    const provider = new Provider();
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
    const first = world.spawn({ freezeAt: { point: 'B7', tool: 'charge' } });
    await startAndGo(world, first.pawl);
    await first.frozen;
    const second = world.spawn();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await second.pawl.view('r1')).toMatchObject({ status: 'done', lease: null });
    expect([provider.requests, provider.queried]).toEqual([1, 0]);
    expect(await world.test.store.due(10)).toEqual([]);
    await world.close();
  });
});

describe.each(STORES)('a day later on $name', (kind) => {
  test.each([
    { answer: 'truth', status: 'done', effects: 1 },
    { answer: 'down', status: 'needs_human', effects: 1 },
  ] as const)(
    'R07 an unknown payment whose provider says $answer ends $status',
    async ({ answer, status, effects }) => {
      const clock = simulatedClock(1_800_000_000_000);
      const provider = new Provider();
      if (answer === 'down') provider.queries.push(...Array.from({ length: 100_000 }, () => 'down' as const));
      const world = openWorld(
        kind,
        [threeStepAgent({ charge: chargeTool(provider, { maxDelayMs: 3_600_000 }) })],
        clock,
      );
      const first = world.spawn({ freezeAt: { point: 'B4', tool: 'charge' } });
      await startAndGo(world, first.pawl);
      await clock.advance(200);
      await first.frozen;
      // Nobody works for a day: what is old is not thereby failed.
      await clock.advance(86_400_000);
      const second = world.spawn();
      await clock.advance(60_000);
      if (status === 'needs_human') await clock.advance(2 * 86_400_000);
      const view = await second.pawl.view('r1');
      expect(view.status).toBe(status);
      expect([provider.effects.length, provider.requests]).toEqual([effects, 1]);
      if (status === 'needs_human') {
        expect(view.next).toMatchObject({ kind: 'await_human', tool: 'charge' });
        expect(view.doNotRepeat).toMatchObject([{ tool: 'charge', outcome: 'unknown' }]);
      }
      await world.test.remove();
    },
  );
});
