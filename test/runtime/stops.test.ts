/** What stops the reducing of a run, what does not, and how it goes on: DESIGN 3, "if a step throws", and 3.3. */
import { describe, expect, test } from 'vitest';
import { assign, sendTo } from 'xstate';
import { z } from 'zod';
import type { RunView } from '../../src/runtime/view.ts';
import {
  chart,
  contextOf,
  entriesOf,
  eventually,
  invoke,
  keep,
  keepEnd,
  kindsOf,
  none,
  Script,
  scripted,
} from './charts.ts';
import { closeWell, needsHuman, openDesk, reset, send, type Pawl } from './desk.ts';
import { STORES } from './stores.ts';

/** Code that is mended while the run waits: the same structure, another behaviour. */
class Bug {
  isFixed = false;
  /** An action that throws until it is fixed. */
  readonly action = assign(({ context }: { context: object }) => {
    if (!this.isFixed) throw new Error('Cannot read properties of undefined');
    return { ...context, mended: true };
  }) as never;
}

const toSelf = (({ self }: { self: unknown }) => self) as never;

describe.each(STORES)('a step that throws on $name', (kind) => {
  test.concurrent('by an outside event: it is refused and nothing else changes', async () => {
    const bug = new Bug();
    const agent = chart({
      events: { NEXT: none },
      config: {
        initial: 'a',
        context: {},
        states: { a: { on: { NEXT: { target: 'b', actions: bug.action } } }, b: {} },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    const before = await pawl.view('r1');
    const verdict = await send(pawl, 'NEXT');
    expect(verdict).toMatchObject({
      verdict: 'refused',
      reason: 'step_threw',
      state: 'a',
      sequence: 1,
      allowed: ['NEXT'],
    });
    const [refused] = kindsOf(await entriesOf(pawl, 'r1'), 'refused');
    expect(refused).toMatchObject({ reason: 'step_threw', type: 'NEXT' });
    expect(refused?.['message']).toContain('Cannot read properties of undefined');
    const { updatedAtMs: _one, lease: _lease, ...after } = await pawl.view('r1');
    expect(before).toMatchObject(after);
    await closeWell(world, pawl);
  });

  test.concurrent('a context that does not fit its schema is a step that throws', async () => {
    const agent = chart({
      events: { ADD: z.object({ n: z.number() }) },
      context: z.object({ total: z.int().max(10) }),
      config: {
        context: { total: 0 },
        on: {
          ADD: { actions: assign({ total: ({ context, event }: never) => (context as never)['total'] + event['n'] }) },
        },
      } as object,
    });
    const { world, pawl } = await openDesk(kind, agent);
    const add = (n: number): ReturnType<Pawl['send']> => pawl.send('r1', { type: 'ADD', n } as never);
    expect(await add(7)).toMatchObject({ verdict: 'applied' });
    expect(await add(7)).toMatchObject({ verdict: 'refused', reason: 'step_threw' });
    expect(await add(0.5)).toMatchObject({ verdict: 'refused', reason: 'step_threw' });
    expect(await add(3)).toMatchObject({ verdict: 'applied' });
    expect((await pawl.view('r1')).context).toEqual({ total: 10 });
    await closeWell(world, pawl);
  });

  test.concurrent(
    'by a completion: the fact is kept, events are held, and a release after the fix goes on in order',
    async () => {
      const bug = new Bug();
      const script = new Script();
      const agent = chart({
        events: { NOTE: none, LATE: none, OTHER: none },
        actors: { act: scripted(script) },
        config: {
          initial: 'acting',
          context: { seen: [] },
          states: {
            acting: {
              invoke: invoke('act', { key: 'k', n: 1 }, { onDone: { target: 'resting', actions: bug.action } }),
              on: { NOTE: {} },
            },
            resting: {
              on: {
                LATE: { actions: keep('seen', () => ['late']) },
                OTHER: { actions: keep('seen', (_event, { seen }: never) => [...(seen as string[]), 'other']) },
              },
            },
          },
        },
      });
      const { world, pawl } = await openDesk(kind, agent);
      const stopped = await needsHuman(pawl, 'step_threw');
      expect(stopped).toMatchObject({ state: 'acting', openOperations: [], lastConfirmedEffect: { tool: 'act' } });
      const stored = await world.test.store.load('r1');
      expect(stored?.record?.pending).toMatchObject([{ invocationId: '1.0', output: { id: 'ok' } }]);
      expect(await world.test.store.receipt('r1', script.calls[0]?.operationId ?? '')).toMatchObject({
        outcome: 'succeeded',
      });
      // Legal only once the completion is reduced, which comes first.
      expect(await send(pawl, 'LATE', 50)).toMatchObject({ verdict: 'accepted', state: 'acting' });
      expect(await send(pawl, 'OTHER', 50)).toMatchObject({ verdict: 'accepted' });
      await eventually(async () => {
        expect((await pawl.view('r1')).inbox.deferred.map(({ type }) => type)).toEqual(['LATE', 'OTHER']);
      });
      expect(await pawl.release('r1', { by: 'ann', reason: 'again' })).toMatchObject({ verdict: 'applied' });
      await needsHuman(pawl, 'step_threw');
      expect((await pawl.view('r1')).inbox.deferred.map(({ type }) => type)).toEqual(['LATE', 'OTHER']);
      await pawl.close();
      bug.isFixed = true;
      const second = world.spawn({ leaseMs: 2_000 }).pawl;
      const released = await second.release('r1', { by: 'ann', reason: 'fixed' });
      expect(released).toMatchObject({ verdict: 'applied', state: 'resting' });
      expect(await second.view('r1')).toMatchObject({
        status: 'waiting',
        context: { mended: true, seen: ['late', 'other'] },
        inbox: { deferred: [] },
      });
      expect(script.calls.length).toBe(1);
      const verdicts = kindsOf(await entriesOf(second, 'r1'), 'transitioned').map(
        ({ event }) => (event as { type: string }).type,
      );
      expect(verdicts.slice(-3)).toEqual(['xstate.done.actor.0.chart.acting', 'LATE', 'OTHER']);
      await closeWell(world, second);
    },
  );

  test.concurrent('by a timer: it stays armed, and fires after the fix', async () => {
    const bug = new Bug();
    const agent = chart({
      config: {
        initial: 'a',
        context: {},
        states: { a: { after: { 30: { target: 'b', actions: bug.action } } }, b: { type: 'final' } },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await needsHuman(pawl, 'step_threw')).toMatchObject({ state: 'a', timers: [{ kind: 'after' }] });
    bug.isFixed = true;
    await pawl.release('r1', { by: 'ann', reason: 'fixed' });
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done', state: 'b' });
    await closeWell(world, pawl);
  });

  test.concurrent('by the deadline: it is not forgotten', async () => {
    const bug = new Bug();
    const agent = chart({
      events: { DEADLINE_EXCEEDED: none },
      config: {
        initial: 'a',
        context: {},
        states: { a: { on: { DEADLINE_EXCEEDED: { target: 'b', actions: bug.action } } }, b: { type: 'final' } },
      },
    });
    const late = await openDesk(kind, agent);
    await late.pawl.start('chart', { runId: 'r2', input: {} as never, deadlineAtMs: Date.now() + 30 });
    await late.pawl.wait('r2', {
      until: ((view: RunView) => view.status === 'needs_human') as never,
      timeoutMs: 5_000,
    });
    bug.isFixed = true;
    await late.pawl.release('r2', { by: 'ann', reason: 'fixed' });
    expect(await late.pawl.wait('r2', { timeoutMs: 5_000 })).toMatchObject({ status: 'done', state: 'b' });
    await closeWell(late.world, late.pawl, 'r2');
  });

  test.concurrent('by an own event: it is kept, and comes before what was held back', async () => {
    const bug = new Bug();
    const agent = chart({
      events: { GO: none, OWN: none, HELD: none },
      config: {
        initial: 'a',
        context: { seen: [] },
        states: {
          a: {
            on: {
              GO: { actions: sendTo(toSelf, { type: 'OWN' } as never) },
              OWN: { target: 'b', actions: bug.action },
            },
          },
          b: { on: { HELD: 'c' } },
          c: { type: 'final' },
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    await send(pawl, 'GO');
    await needsHuman(pawl, 'step_threw');
    await send(pawl, 'HELD', 0);
    await eventually(async () => expect((await pawl.view('r1')).inbox.deferred.length).toBe(1));
    bug.isFixed = true;
    await pawl.release('r1', { by: 'ann', reason: 'fixed' });
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done', state: 'c' });
    await closeWell(world, pawl);
  });

  test.concurrent('by a guard that always throws: only its own event suffers', async () => {
    const agent = chart({
      events: { NEXT: none, BAD: none },
      config: {
        initial: 'a',
        context: {},
        states: {
          a: { on: { NEXT: 'b' } },
          b: {
            on: {
              NEXT: 'c',
              BAD: {
                target: 'c',
                guard: () => {
                  throw new Error('no such field');
                },
              },
            },
          },
          c: { type: 'final' },
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await send(pawl, 'NEXT')).toMatchObject({ verdict: 'applied', allowed: ['NEXT'] });
    expect(await send(pawl, 'BAD')).toMatchObject({ verdict: 'refused', reason: 'step_threw' });
    expect(await send(pawl, 'NEXT')).toMatchObject({ verdict: 'applied', state: 'c' });
    await closeWell(world, pawl);
  });

  test.concurrent(
    'what may have happened is still asked about while reducing is stopped, and nobody is busy waiting',
    async () => {
      const bug = new Bug();
      const script = new Script([reset, ...Array.from({ length: 100 }, () => reset)]);
      const reading = new Script();
      const region = (src: string, onDone: object): object => ({
        initial: 'acting',
        states: { acting: { invoke: invoke(src, { key: src, n: 1 }, { onDone }) }, rest: {} },
      });
      const agent = chart({
        actors: {
          act: scripted(script, { idempotent: true, minDelayMs: 20, maxDelayMs: 20 }),
          look: scripted(reading, { name: 'look', effect: 'read' }),
        },
        config: {
          type: 'parallel',
          context: {},
          states: {
            left: region('act', { target: 'rest' }),
            right: region('look', { target: 'rest', actions: bug.action }),
          },
        },
      });
      const { world, pawl } = await openDesk(kind, agent);
      await needsHuman(pawl, 'step_threw');
      await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
      const { fence: before } = (await world.test.store.load('r1'))?.facts ?? { fence: 0 };
      await new Promise((resolve) => setTimeout(resolve, 200));
      const { fence: after } = (await world.test.store.load('r1'))?.facts ?? { fence: 0 };
      expect(after - before).toBeLessThanOrEqual(1);
      await closeWell(world, pawl);
    },
  );
});

describe.each(STORES)('a loop on $name', (kind) => {
  const loopEvents = { GO: none, LOOP: none };

  test.concurrent('of own events is a runaway after 100 macrosteps; other runs go on', async () => {
    const again = sendTo(toSelf, { type: 'LOOP' } as never);
    const agent = chart({
      events: loopEvents,
      config: { context: {}, on: { GO: { actions: again }, LOOP: { actions: again } } },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await send(pawl, 'GO')).toMatchObject({ verdict: 'applied' });
    expect(await needsHuman(pawl, 'runaway')).toMatchObject({ sequence: 101 });
    await pawl.start('chart', { runId: 'r2', input: {} as never });
    expect(await pawl.view('r2')).toMatchObject({ status: 'waiting' });
    expect(await pawl.cancel('r1', { by: 'ann', reason: 'loops' })).toMatchObject({ verdict: 'applied' });
    expect(await pawl.view('r1')).toMatchObject({ status: 'cancelled' });
    await closeWell(world, pawl);
  });

  test.concurrent('of stored receipts is a runaway, with the completion that was not reduced kept', async () => {
    const script = new Script();
    const again = { target: 'acting', reenter: true, actions: keepEnd('ends') };
    const agent = chart({
      actors: { act: scripted(script) },
      config: {
        initial: 'acting',
        context: { ends: [] },
        states: { acting: { invoke: invoke('act', { key: 'k', n: 1 }, { onDone: again }) } },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    await needsHuman(pawl, 'runaway');
    expect(script.calls.length).toBe(1);
    expect((await world.test.store.load('r1'))?.record?.pending.length).toBe(1);
    await pawl.release('r1', { by: 'ann', reason: 'go on' });
    expect(contextOf(await needsHuman(pawl, 'runaway'))['ends']).toHaveLength(200);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('of raised events is a step that throws', async () => {
    const agent = chart({
      events: loopEvents,
      config: {
        context: {},
        initial: 'a',
        states: {
          a: {
            always: { target: 'b', guard: ({ context }: never) => context['on'] === true },
            on: { GO: { actions: assign({ on: true } as never) } },
          },
          b: { always: { target: 'a', guard: ({ context }: never) => context['on'] === true } },
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await send(pawl, 'GO')).toMatchObject({ verdict: 'refused', reason: 'step_threw', state: 'a' });
    await closeWell(world, pawl);
  });
});
