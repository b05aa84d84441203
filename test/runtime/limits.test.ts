/** Records of 4 MB, events of 256 KB, long messages: refused or set aside, never lost and never in a circle. */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { z } from 'zod';
import { chart, entriesOf, eventually, gate, invoke, keep, kindsOf, none, Script, scripted } from './charts.ts';
import { closeWell, desk, go, needsHuman, openDesk, send, waitStatus, type Pawl } from './desk.ts';
import { STORES } from './stores.ts';

const MB = 1024 * 1024;
const grow = assign({
  big: ({ context, event }: never) => (context['big'] as string) + 'x'.repeat(event['bytes']),
} as never);

/** Its context is as large as it is told to be; the tool's output is kept beside it. */
function bag(script: Script): ReturnType<typeof chart> {
  return chart({
    events: { GROW: z.object({ bytes: z.int() }), ACT: none, SHRINK: none },
    actors: { act: scripted(script) },
    config: {
      initial: 'idle',
      context: { big: '', kept: '' },
      on: { GROW: { actions: grow }, SHRINK: { actions: keep('big', () => '') } },
      states: {
        idle: { on: { ACT: 'acting' } },
        acting: {
          invoke: invoke(
            'act',
            { key: 'k', n: 1 },
            {
              onDone: { target: 'idle', actions: keep('kept', ({ output }: { output: { id: string } }) => output.id) },
            },
          ),
        },
      },
    },
  });
}

const growBy = (pawl: Pawl, bytes: number): ReturnType<Pawl['send']> =>
  pawl.send('r1', { type: 'GROW', bytes } as never);

describe.each(STORES)('on $name', (kind) => {
  test.concurrent('an event of 256 KB is taken; a larger one is refused before anything is written', async () => {
    const agent = chart({
      events: { NOTE: z.object({ text: z.string() }) },
      config: {
        context: { length: 0 },
        on: { NOTE: { actions: keep('length', ({ text }: { text: string }) => text.length) } },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    const length = 256 * 1024 - 300;
    expect(await pawl.send('r1', { type: 'NOTE', text: 'x'.repeat(length) } as never)).toMatchObject({
      verdict: 'applied',
    });
    expect((await pawl.view('r1')).context).toEqual({ length });
    const before = (await entriesOf(pawl, 'r1')).length;
    await expect(pawl.send('r1', { type: 'NOTE', text: 'x'.repeat(256 * 1024) } as never)).rejects.toMatchObject({
      code: 'EVENT_TOO_LARGE',
      httpStatus: 413,
    });
    expect((await entriesOf(pawl, 'r1')).length).toBe(before);
    await closeWell(world, pawl);
  });

  test.concurrent('an event that would make the record larger than 4 MB is refused, and the run goes on', async () => {
    const { world, pawl } = await openDesk(kind, bag(new Script()));
    expect(await growBy(pawl, 3 * MB)).toMatchObject({ verdict: 'applied' });
    expect(await growBy(pawl, 2 * MB)).toMatchObject({ verdict: 'refused', reason: 'step_threw', sequence: 2 });
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'refused')[0]?.['message']).toContain('Move large values');
    expect(await pawl.view('r1')).toMatchObject({ status: 'waiting', sequence: 2 });
    expect(await growBy(pawl, 0.5 * MB)).toMatchObject({ verdict: 'applied' });
    await closeWell(world, pawl);
  });

  test.concurrent('nor may it grow beyond that in small steps under one lease', async () => {
    const { opened, open } = gate();
    const { world, pawl } = await openDesk(kind, bag(new Script([() => opened.then(() => ({ id: 'one' }))])));
    await send(pawl, 'ACT');
    await waitStatus(pawl, 'attempted');
    const verdicts: unknown[] = [];
    for (let step = 0; step < 6; step++) verdicts.push((await growBy(pawl, MB - 1_000)).verdict);
    expect(verdicts).toEqual(['applied', 'applied', 'applied', 'refused', 'refused', 'refused']);
    open();
    await eventually(async () => expect(await pawl.view('r1')).toMatchObject({ state: 'idle', lease: null }));
    expect(await send(pawl, 'SHRINK')).toMatchObject({ verdict: 'applied' });
    expect(await growBy(pawl, MB)).toMatchObject({ verdict: 'applied' });
    await closeWell(world, pawl);
  });

  test.concurrent(
    'a receipt for which the record has no room is kept as a fact, and reduced when there is room',
    async () => {
      const { opened, open } = gate();
      const script = new Script([() => opened.then(() => ({ id: 'y'.repeat(200 * 1024) }))]);
      const { world, pawl } = await openDesk(kind, bag(script));
      await growBy(pawl, Math.floor(3.6 * MB));
      await send(pawl, 'ACT');
      const { openOperations } = await waitStatus(pawl, 'attempted');
      // From here the output fits neither the context nor the list of completions that wait.
      expect(await growBy(pawl, Math.floor(0.25 * MB))).toMatchObject({ verdict: 'applied' });
      open();
      const view = await needsHuman(pawl, 'step_threw');
      expect(view).toMatchObject({ state: 'acting' });
      const { operationId = '' } = openOperations[0] ?? {};
      expect(await world.test.store.receipt('r1', operationId)).toMatchObject({ outcome: 'succeeded' });
      await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
      // A release without more room is answered, and nothing goes round in circles.
      await pawl.release('r1', { by: 'ann', reason: 'try' });
      await needsHuman(pawl, 'step_threw');
      await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
      const { fence } = (await world.test.store.load('r1'))?.facts ?? { fence: 0 };
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect((await world.test.store.load('r1'))?.facts.fence).toBe(fence);
      expect(script.calls.length).toBe(1);
      // It can still be given up: the effect stands and is reported.
      expect(await pawl.cancel('r1', { by: 'ann', reason: 'too large' })).toMatchObject({ verdict: 'applied' });
      expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'cancelled' });
      await closeWell(world, pawl);
    },
  );

  test.concurrent('an error with a message of a megabyte stops no more than its own step', async () => {
    const agent = desk(scripted(new Script()), {
      events: { BAD: none },
      on: {
        BAD: {
          actions: assign(() => {
            throw new Error('e'.repeat(MB));
          }),
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await send(pawl, 'BAD')).toMatchObject({ verdict: 'refused', reason: 'step_threw' });
    await go(pawl, 'k');
    await closeWell(world, pawl);
  });

  test.concurrent('tool input that is too large for the ledger stops the run with its reason', async () => {
    const agent = chart({
      events: { ACT: none },
      actors: { act: scripted(new Script()) },
      config: {
        initial: 'idle',
        context: {},
        states: {
          idle: { on: { ACT: 'acting' } },
          acting: { invoke: invoke('act', { key: 'k'.repeat(80 * 1024), n: 1 }, { onDone: 'idle' }) },
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await send(pawl, 'ACT')).toMatchObject({ verdict: 'refused', reason: 'step_threw', state: 'idle' });
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'refused')[0]?.['message']).toContain('entry');
    await closeWell(world, pawl);
  });
});
