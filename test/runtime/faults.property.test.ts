/** Calls of the store fail at random, before or after they were applied, under several workers: each effect once, no run lost. */
import { describe, expect, test } from 'vitest';
import { PawlError } from '../../src/errors.ts';
import type { Store } from '../../src/persistence/store.ts';
import { chargeTool, threeStepAgent, type Recovery } from './agents.ts';
import { Provider, type Mode } from './provider.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const FAULTY = new Set([
  'claim',
  'commit',
  'renew',
  'release',
  'receive',
  'accept',
  'reserve',
  'settleReservation',
  'verdict',
  'load',
]);

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function failing(store: Store, random: () => number, share: () => number): Store {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      if (!FAULTY.has(String(property))) return value.bind(target) as unknown;
      return async (...args: unknown[]) => {
        const lost = (): PawlError => new PawlError('STORE_UNREACHABLE', `${String(property)}: connection reset`);
        const draw = random();
        if (draw < share() / 2) throw lost();
        const result: unknown = await (value as (...given: unknown[]) => unknown).apply(target, args);
        if (draw < share()) throw lost();
        return result;
      };
    },
  });
}

describe.each(STORES)('on $name', (kind) => {
  test.concurrent.each(['query', 'both', 'repeat'] satisfies Recovery[])(
    'with tools recovered by %s',
    async (recovery) => {
      const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
      process.stdout.write(`store faults on ${kind.name}, ${recovery}: SEED=${seed}\n`);
      const random = randomOf(seed);
      const provider = new Provider({ dedupe: recovery !== 'query' });
      const modes: Mode[] = ['ok', 'ok', 'acceptThenReset', 'error', 'acceptThenHang', 'hang'];
      for (let index = 0; index < 30; index++) provider.modes.push(modes[Math.floor(random() * modes.length)] ?? 'ok');
      const options = { recovery, timeoutMs: 100, maxAttempts: 20 } as const;
      const agent = threeStepAgent({
        charge: chargeTool(provider, options),
        mail: chargeTool(provider, { ...options, name: 'mail', scope: 'tenant' }),
      });
      const world = openWorld(kind, [agent]);
      let share = 0.2;
      const workers = [0, 1, 2].map(
        () => world.spawn({ store: failing(world.test.again(), random, () => share) }).pawl,
      );
      const outside = world.spawn({ idle: true }).pawl;
      const ids = Array.from({ length: 6 }, (_, index) => `r${index}`);
      for (const runId of ids) {
        await outside.start('threeStep', { runId, input: { order: runId, amount: 10 } });
        await outside.send(runId, { type: 'GO', amount: 10 }, { waitMs: 0 });
        await outside.send(runId, { type: 'LATER', note: runId }, { waitMs: 0 });
      }
      setTimeout(() => {
        share = 0;
      }, 1_500);
      for (const runId of ids) {
        const view = await outside.wait(runId, { timeoutMs: 20_000 });
        expect(view, `SEED=${seed}`).toMatchObject({ status: 'done', state: 'done', output: { notes: [runId] } });
        expect([provider.effectsOf(`charge:${runId}`), provider.effectsOf(`mail:${runId}`)], `SEED=${seed}`).toEqual([
          1, 1,
        ]);
        expect(await outside.verify(runId), `SEED=${seed}`).toMatchObject({ ok: true });
      }
      expect(workers.length).toBe(3);
      await world.close();
    },
  );
});
