/** An outcome that nobody can find out: exhausted, asked again, or said by a person. */
import { describe, expect, test } from 'vitest';
import { chart, entriesOf, eventually, invoke, keep, kindsOf, none, Script, scripted } from './charts.ts';
import { closeWell, desk, ends, go, needsHuman, openDesk, reset, send, waitStatus } from './desk.ts';
import type { RunView } from '../../src/runtime/view.ts';
import { STORES } from './stores.ts';

describe.each(STORES)('an unknown outcome on $name', (kind) => {
  const exhausting = { asks: true, reconcileForMs: 60, minDelayMs: 20, maxDelayMs: 20 };

  test.concurrent(
    'that nobody can clear up within reconcileForMs goes to a person; other events go on; release asks again',
    async () => {
      let isDown = true;
      const script = new Script(
        [reset],
        [
          () => {
            if (isDown) throw new Error('down');
            return { id: 'x' };
          },
        ],
      );
      const { world, pawl } = await openDesk(
        kind,
        desk(scripted(script, exhausting), {
          on: { NOTE: { actions: keep('noted', () => true) } },
          events: { NOTE: none },
        }),
      );
      await go(pawl, 'k');
      await waitStatus(pawl, 'escalated');
      await needsHuman(pawl, 'unknown_exhausted');
      const { length: asked } = script.asked;
      expect(await send(pawl, 'NOTE')).toMatchObject({ verdict: 'applied' });
      await pawl.release('r1', { by: 'ann', reason: 'it is up again' });
      await eventually(() => expect(script.asked.length).toBeGreaterThan(asked));
      await needsHuman(pawl, 'unknown_exhausted');
      isDown = false;
      expect(script.calls.length).toBe(1);
      await closeWell(world, pawl);
    },
  );

  test.concurrent.each([
    ['succeeded', ['said']],
    ['failed', ['TOOL_FAILED']],
    ['not_executed', ['ok']],
  ] as const)('resolved as %s', async (as, expected) => {
    const script = new Script(
      [reset],
      [
        () => {
          throw new Error('down');
        },
      ],
    );
    const { world, pawl } = await openDesk(kind, desk(scripted(script, exhausting)));
    await go(pawl, 'k');
    const { openOperations } = await waitStatus(pawl, 'escalated');
    const operationId = openOperations[0]?.operationId ?? '';
    const given = { by: 'ann', evidence: 'seen in their books' };
    expect(await pawl.resolve('r1', operationId, { as, output: { id: 'said' }, ...given })).toMatchObject({
      verdict: 'applied',
    });
    expect(await ends(pawl, 1)).toEqual(expected);
    const [resolved] = kindsOf(await entriesOf(pawl, 'r1'), 'resolved');
    expect(resolved).toMatchObject({ operationId, outcome: as, ...given });
    expect(await pawl.view('r1')).toMatchObject({ status: 'waiting', error: null, waitingFor: ['event GO|END'] });
    await expect(pawl.resolve('r1', operationId, { as: 'failed', ...given })).rejects.toMatchObject({
      code: 'OPERATION_SETTLED',
      httpStatus: 409,
    });
    await expect(pawl.resolve('r1', 'op_nothing', { as: 'failed', ...given })).rejects.toMatchObject({
      code: 'OPERATION_NOT_FOUND',
      httpStatus: 404,
    });
    await expect(pawl.release('r1', { by: 'ann', reason: 'x' })).resolves.toMatchObject({ verdict: 'refused' });
    await closeWell(world, pawl);
  });

  test.concurrent('an operation whose call is under way cannot be resolved', async () => {
    const script = new Script([() => new Promise(() => {})]);
    const { world, pawl, worker } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    const { openOperations } = await waitStatus(pawl, 'attempted');
    const { operationId = '' } = openOperations[0] ?? {};
    await expect(pawl.resolve('r1', operationId, { as: 'failed', by: 'ann', evidence: '' })).rejects.toMatchObject({
      code: 'OPERATION_SETTLED',
    });
    await worker?.stop({ graceMs: 0 });
    await closeWell(world, pawl);
  });

  test.concurrent('of two operations: each is asked about until it is resolved', async () => {
    const region = (key: string): object => ({
      initial: 'acting',
      states: { acting: { invoke: invoke('act', { key, n: 1 }, { onDone: 'rest' }) }, rest: { type: 'final' } },
    });
    const agent = chart({
      actors: { act: scripted(new Script([reset, reset])) },
      config: { type: 'parallel', context: {}, states: { one: region('a'), two: region('b') } },
    });
    const { world, pawl } = await openDesk(kind, agent);
    const isAsked = (view: RunView): boolean => view.openOperations.every(({ status }) => status === 'escalated');
    const { openOperations } = await pawl.wait('r1', { until: isAsked as never, timeoutMs: 5_000 });
    const [one, two] = openOperations.map(({ operationId }) => operationId) as [string, string];
    const given = { as: 'succeeded', output: { id: 'x' }, by: 'ann', evidence: 'seen' } as const;
    await pawl.resolve('r1', one, given);
    expect(await pawl.view('r1')).toMatchObject({
      status: 'needs_human',
      error: { code: 'UNKNOWN_OUTCOME' },
      next: { kind: 'await_human', operationId: two },
    });
    await pawl.resolve('r1', two, given);
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done', error: null });
    await closeWell(world, pawl);
  });
});
