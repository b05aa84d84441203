/** Failures people reported on other systems: two owners, repeated starts, interrupted runs that nobody picks up. */
import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { z } from 'zod';
import { defineAgent } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import type { Store } from '../../src/persistence/store.ts';
import { chargeTool, lookupTool, threeStepAgent } from './agents.ts';
import { Provider } from './provider.ts';
import { STORES } from './stores.ts';
import { LEASE_MS, openWorld } from './world.ts';

describe.each(STORES)('on $name', (kind) => {
  test.each(['B1', 'B2', 'B5'] as const)(
    'R30 a worker frozen at %s thaws after another one has finished the run: one effect, its commit is refused',
    async (point) => {
      const provider = new Provider();
      const agent = threeStepAgent({ charge: chargeTool(provider), mail: chargeTool(provider, { name: 'mail' }) });
      const world = openWorld(kind, [agent]);
      let thaw: () => void = () => {};
      const thawed = new Promise<void>((resolve) => {
        thaw = resolve;
      });
      let reached: () => void = () => {};
      const frozen = new Promise<void>((resolve) => {
        reached = resolve;
      });
      let isFrozen = false;
      const warnings: string[] = [];
      const first = createRuntime({
        agents: [agent],
        store: freezable(world.test.again(), () => (isFrozen ? thawed : null)),
        leaseMs: LEASE_MS,
        logger: { info() {}, warn: (message) => void warnings.push(message), error() {} },
        crashPoints: {
          reached(at, info) {
            if (at !== point || (info.tool !== 'charge' && info.tool !== 'lookup')) return undefined;
            isFrozen = true;
            reached();
            return thawed;
          },
        },
      });
      await first.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
      await first.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
      // Driven, so that nothing of the first process renews the lease while it is frozen.
      const driving = first.drive('r1', { timeoutMs: 10_000 });
      await frozen;
      const second = world.spawn();
      const view = await second.pawl.wait('r1', { timeoutMs: 10_000 });
      expect(view).toMatchObject({ status: 'done' });
      isFrozen = false;
      thaw();
      await driving;
      expect([provider.effectsOf('charge:o1'), provider.effectsOf('mail:o1')]).toEqual([1, 1]);
      expect((await second.pawl.view('r1')).sequence).toBe(view.sequence);
      expect(await second.pawl.verify('r1')).toMatchObject({ ok: true });
      if (point !== 'B2') expect(warnings).toContain('the lease of a run was lost');
      await first.close();
      await world.close();
    },
  );

  test('R32 two workers that recover 200 interrupted runs at once, each with a message waiting, agree', async () => {
    const provider = new Provider();
    const agent = threeStepAgent({ charge: chargeTool(provider), mail: chargeTool(provider, { name: 'mail' }) });
    const world = openWorld(kind, [agent]);
    const outside = world.spawn({ freezeAt: { point: 'B0', tool: 'never' }, idle: true }).pawl;
    const ids = Array.from({ length: 200 }, (_, index) => `r${index}`);
    for (const runId of ids) {
      await outside.start('threeStep', { runId, input: { order: runId, amount: 10 } });
      await outside.send(runId, { type: 'GO', amount: 10 }, { waitMs: 0 });
      await outside.send(runId, { type: 'LATER', note: runId }, { waitMs: 0 });
    }
    const one = world.spawn();
    const two = world.spawn();
    for (const [index, runId] of ids.entries()) {
      const { pawl } = index % 2 === 0 ? one : two;
      const view = await pawl.wait(runId, { timeoutMs: 20_000 });
      expect(view).toMatchObject({ status: 'done', output: { notes: [runId] } });
      expect(await pawl.verify(runId)).toMatchObject({ ok: true, sequence: view.sequence });
      expect(provider.effectsOf(`charge:${runId}`)).toBe(1);
    }
    expect(provider.effects.length).toBe(400);
    await world.close();
  });

  test('R34 the same id with other input or another machine is refused, and the first run still recovers', async () => {
    const provider = new Provider();
    const other = defineAgent({
      name: 'other',
      version: 1,
      machine: setup({}).createMachine({ id: 'other', initial: 'a', states: { a: { type: 'final' } } }),
      events: defineEvents({}),
      input: z.object({ order: z.string(), amount: z.int() }),
    });
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) }), other]);
    const first = world.spawn({ freezeAt: { point: 'B4', tool: 'charge' } });
    const input = { order: 'o1', amount: 10 };
    const started = await first.pawl.start('threeStep', { runId: 'r1', input });
    await first.pawl.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
    await first.frozen;
    const { pawl } = world.spawn();
    expect((await pawl.start('threeStep', { runId: 'r1', input })).createdAtMs).toBe(started.createdAtMs);
    await expect(pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 11 } })).rejects.toMatchObject({
      code: 'RUN_EXISTS',
      httpStatus: 409,
      details: {
        reason: 'input_mismatch',
        stored: { input: expect.any(String) },
        asked: { input: expect.any(String) },
      },
    });
    await expect(pawl.start('other', { runId: 'r1', input })).rejects.toMatchObject({
      code: 'RUN_EXISTS',
      details: { reason: 'machine_mismatch' },
    });
    expect(await pawl.wait('r1', { timeoutMs: 10_000 })).toMatchObject({ status: 'done' });
    expect(provider.effects.length).toBe(1);
    await world.close();
  });

  test('R49 a run interrupted at any boundary is picked up within lease and sweep, with no call from outside', async () => {
    const provider = new Provider();
    const agent = threeStepAgent({
      lookup: lookupTool(),
      charge: chargeTool(provider),
      mail: chargeTool(provider, { name: 'mail' }),
    });
    for (const point of ['B1', 'B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B8'] as const) {
      const world = openWorld(kind, [agent]);
      const first = world.spawn({ freezeAt: { point } });
      await first.pawl.start('threeStep', { runId: 'r1', input: { order: point, amount: 10 } });
      await first.pawl.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
      await first.frozen;
      const fromMs = performance.now();
      const { pawl } = world.spawn();
      await pawl
        .wait('r1', { until: (view) => view.sequence > 0 && view.lease !== null, timeoutMs: 5_000 })
        .catch(() => {});
      await pawl.wait('r1', { timeoutMs: 10_000 });
      // The lease, the sweep, and for an attempt that was never sent the window of its time-out.
      expect(performance.now() - fromMs).toBeLessThan(LEASE_MS + 300 + 2_000);
      await world.close();
    }
  });

  test('R53 a tool that hangs is timed out, asked about, and whoever needs its key sees by whom it is blocked', async () => {
    const provider = new Provider();
    provider.modes.push('hang');
    provider.queries.push('down', 'down');
    const events = defineEvents({ NEVER: z.object({}) });
    const machine = setup({
      types: {} as { context: Record<string, never>; input: Record<string, never>; events: EventsOf<typeof events> },
      actors: { charge: chargeTool(provider, { scope: 'tenant', timeoutMs: 400, maxDelayMs: 200 }) },
    }).createMachine({
      id: 'paying',
      initial: 'charging',
      context: {},
      states: {
        charging: {
          invoke: { src: 'charge', input: () => ({ order: 'o1', amount: 10 }), onDone: 'done', onError: 'failed' },
        },
        done: { type: 'final' },
        failed: { type: 'final' },
      },
    });
    const agent = defineAgent({ name: 'paying', version: 1, machine, events, input: z.object({}) });
    const world = openWorld(kind, [agent]);
    const { pawl } = world.spawn();
    await pawl.start('paying', { runId: 'r1', input: {} });
    await pawl.wait('r1', { until: (view) => view.openOperations[0]?.status === 'attempted', timeoutMs: 5_000 });
    await pawl.start('paying', { runId: 'r2', input: {} });
    const blocked = await pawl.wait('r2', {
      until: (view) => view.openOperations[0]?.status === 'blocked',
      timeoutMs: 5_000,
    });
    expect(blocked.openOperations[0]?.reason).toContain('r1');
    expect(blocked.next.kind).toBe('await_event');
    expect(await pawl.wait('r1', { timeoutMs: 10_000 })).toMatchObject({ status: 'done', state: 'done' });
    expect(await pawl.wait('r2', { timeoutMs: 10_000 })).toMatchObject({ status: 'done', state: 'done' });
    expect(provider.effects.length).toBe(1);
    await world.close();
  });
});

/** A store whose calls wait while the process is frozen, as everything of a stopped process does. */
function freezable(store: Store, gate: () => Promise<void> | null): Store {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      if (property === 'watch' || property === 'read') return value.bind(target) as unknown;
      return async (...args: unknown[]) => {
        await gate();
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
