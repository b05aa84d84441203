/** Each crash window of DESIGN 3.1 has exactly one next safe action: frozen there, taken over by another worker. */
import { describe, expect, test } from 'vitest';
import type { CrashPoint } from '../../src/runtime/crash-points.ts';
import { chargeTool, lookupTool, threeStepAgent, type Recovery } from './agents.ts';
import { Provider } from './provider.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const WINDOWS: { point: CrashPoint; tool?: string }[] = [
  { point: 'B1', tool: 'lookup' },
  ...(['B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B8'] as const).flatMap((point) => [
    { point, tool: 'charge' },
    { point, tool: 'mail' },
  ]),
];

describe.each(STORES)('R09 on $name', (kind) => {
  describe.each(['query', 'both', 'repeat', 'neither'] satisfies Recovery[])(
    'a tool that is recovered by %s',
    (recovery) => {
      test.concurrent.each(WINDOWS)('stopped at $point of $tool', async ({ point, tool }) => {
        const provider = new Provider({ dedupe: recovery === 'both' || recovery === 'repeat' });
        const agent = threeStepAgent({
          lookup: lookupTool(),
          charge: chargeTool(provider, { recovery }),
          mail: chargeTool(provider, { recovery, name: 'mail' }),
        });
        const world = openWorld(kind, [agent]);
        const first = world.spawn({ freezeAt: tool === undefined ? { point } : { point, tool } });
        await first.pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
        await first.pawl.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
        await first.frozen;

        const second = world.spawn();
        const unknowable = recovery === 'neither' && ['B2', 'B3', 'B4', 'B5'].includes(point);
        const view = await second.pawl.wait('r1', {
          until: unknowable ? (seen) => seen.status === 'needs_human' : 'final',
          timeoutMs: 10_000,
        });
        expect(provider.effectsOf('charge:o1')).toBeLessThanOrEqual(1);
        expect(provider.effectsOf('mail:o1')).toBeLessThanOrEqual(1);
        if (unknowable) {
          expect(view.next.kind).toBe('await_human');
          expect(view.openOperations[0]?.tool).toBe(tool);
        } else {
          expect(view).toMatchObject({
            status: 'done',
            state: 'done',
            output: { charge: expect.any(String), code: null },
          });
          expect([provider.effectsOf('charge:o1'), provider.effectsOf('mail:o1')]).toEqual([1, 1]);
        }
        expect(await second.pawl.verify('r1')).toMatchObject({ ok: true });
        await world.close();
      });
    },
  );

  test('stopped at B0, the caller starts again with the same id', async () => {
    const provider = new Provider();
    const world = openWorld(kind, [threeStepAgent({ charge: chargeTool(provider) })]);
    const first = world.spawn({ freezeAt: { point: 'B0' } });
    void first.pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    await first.frozen;
    const { pawl } = world.spawn();
    await expect(pawl.view('r1')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
    expect(await pawl.view('r1')).toMatchObject({ state: 'idle' });
    await world.close();
  });
});
