/** What happens to an event from `send` to its verdict: once, in order, and always with an answer. */
import { describe, expect, test } from 'vitest';
import { assign } from 'xstate';
import { z } from 'zod';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { LedgerEntry } from '../../src/records.ts';
import { now } from '../../src/machines/determinism.ts';
import { simulatedClock } from '../../src/testing/simulated-clock.ts';
import {
  chart,
  contextOf,
  entriesOf,
  eventually,
  gate,
  invoke,
  keep,
  kindsOf,
  none,
  Script,
  scripted,
} from './charts.ts';
import { closeWell, desk, go, openDesk, send, waitStatus, type Pawl } from './desk.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const note = z.object({ n: z.int() });

/** Counts: ADD is taken always, the others by state and policy. */
function counter(): AgentDefinition {
  const add = assign({ seen: ({ context, event }: never) => [...(context['seen'] as number[]), event['n']] } as never);
  return chart({
    events: {
      ADD: note,
      NEXT: none,
      REJECTED: note,
      DEFERRED: { schema: note, whenIllegal: 'defer' },
      DROPPED: { schema: note, whenIllegal: 'drop' },
      GUARDED: note,
      OLD: note,
      MODEL: { schema: note, from: ['model'] },
    },
    config: {
      initial: 'one',
      context: { seen: [] },
      on: {
        ADD: { actions: add },
        GUARDED: { guard: ({ event }: never) => event['n'] > 10, actions: add },
        // Asks for the time: only the coming step knows it.
        OLD: { guard: ({ event }: never) => event['n'] > now(), actions: add },
      },
      states: {
        one: { on: { NEXT: 'two' } },
        two: { on: { DEFERRED: { actions: add }, REJECTED: { actions: add }, DROPPED: { actions: add }, NEXT: 'end' } },
        end: { type: 'final' },
      },
    },
  });
}

const sendN = (pawl: Pawl, type: string, n: unknown, options: object = {}): ReturnType<Pawl['send']> =>
  pawl.send('r1', { type, n } as never, options);

const refusals = (entries: LedgerEntry[]): unknown[] =>
  kindsOf(entries, 'refused').map(({ eventId, type, reason }) => ({ eventId, type, reason }) as object);

describe.each(STORES)('the inbox on $name', (kind) => {
  test.concurrent('a repeated eventId is answered with the first verdict, also after a restart', async () => {
    const { world, pawl } = await openDesk(kind, counter());
    const first = await sendN(pawl, 'ADD', 1, { eventId: 'e1' });
    expect(first).toMatchObject({ verdict: 'applied', sequence: 2, state: 'one' });
    const refused = await sendN(pawl, 'REJECTED', 1, { eventId: 'e2' });
    expect(refused).toMatchObject({ verdict: 'refused', reason: 'forbidden', sequence: 2 });
    await send(pawl, 'NEXT');
    // Other content under the same id is the same event.
    const again = await sendN(pawl, 'ADD', 99, { eventId: 'e1' });
    expect(again).toMatchObject({ verdict: 'duplicate', sequence: 2, state: 'one' });
    expect(await sendN(pawl, 'REJECTED', 1, { eventId: 'e2' })).toMatchObject({
      verdict: 'duplicate',
      sequence: 2,
      state: 'one',
      reason: 'forbidden',
    });
    await pawl.close();
    const second = world.spawn({ leaseMs: 2_000 }).pawl;
    expect(await sendN(second, 'ADD', 1, { eventId: 'e1' })).toMatchObject({ verdict: 'duplicate', sequence: 2 });
    expect((await second.view('r1')).context).toEqual({ seen: [1] });
    const both = await Promise.all([1, 2].map(() => sendN(second, 'ADD', 5, { eventId: 'e3' })));
    expect(both.map(({ verdict }) => verdict).toSorted()).toEqual(['applied', 'duplicate']);
    expect((await second.view('r1')).context).toEqual({ seen: [1, 5] });
    await closeWell(world, second);
  });

  test.concurrent(
    'what the state does not take is refused, deferred or dropped, as the event says; each is recorded',
    async () => {
      const { world, pawl } = await openDesk(kind, counter());
      expect(await sendN(pawl, 'REJECTED', 1, { eventId: 'r' })).toMatchObject({
        verdict: 'refused',
        reason: 'forbidden',
      });
      expect(await sendN(pawl, 'GUARDED', 1, { eventId: 'g' })).toMatchObject({
        verdict: 'refused',
        reason: 'guard_rejected',
      });
      expect(await sendN(pawl, 'OLD', 1, { eventId: 'o' })).toMatchObject({
        verdict: 'refused',
        reason: 'guard_rejected',
      });
      expect(await sendN(pawl, 'DEFERRED', 1, { eventId: 'd1' })).toMatchObject({ verdict: 'deferred', state: 'one' });
      expect(await sendN(pawl, 'DEFERRED', 2, { eventId: 'd2' })).toMatchObject({ verdict: 'deferred' });
      expect(await sendN(pawl, 'DROPPED', 1, { eventId: 'x' })).toMatchObject({ verdict: 'dropped' });
      expect((await pawl.view('r1')).inbox.deferred).toEqual([
        { eventId: 'd1', type: 'DEFERRED' },
        { eventId: 'd2', type: 'DEFERRED' },
      ]);
      const entries = await entriesOf(pawl, 'r1');
      expect(refusals(entries)).toEqual([
        { eventId: 'r', type: 'REJECTED', reason: 'forbidden' },
        { eventId: 'g', type: 'GUARDED', reason: 'guard_rejected' },
        { eventId: 'o', type: 'OLD', reason: 'guard_rejected' },
      ]);
      expect(kindsOf(entries, 'refused')[0]).toMatchObject({ allowed: ['ADD', 'NEXT', 'GUARDED', 'OLD'] });
      expect(kindsOf(entries, 'deferred').map(({ eventId }) => eventId as string)).toEqual(['d1', 'd2']);
      expect(kindsOf(entries, 'dropped').map(({ eventId }) => eventId as string)).toEqual(['x']);
      // In order, in the commit of what made them legal; ADD in between did not.
      await sendN(pawl, 'ADD', 0);
      await send(pawl, 'NEXT');
      expect(await pawl.view('r1')).toMatchObject({
        state: 'two',
        context: { seen: [0, 1, 2] },
        inbox: { deferred: [] },
      });
      expect(await sendN(pawl, 'DEFERRED', 1, { eventId: 'd1' })).toMatchObject({
        verdict: 'duplicate',
        sequence: 4,
        state: 'two',
      });
      await closeWell(world, pawl);
    },
  );

  test.concurrent('at most 100 are deferred, and all 100 are applied when they become legal', async () => {
    const { world, pawl } = await openDesk(kind, counter());
    for (let n = 0; n < 100; n++) await sendN(pawl, 'DEFERRED', n, { eventId: `d${n}`, waitMs: 0 });
    expect(await sendN(pawl, 'DEFERRED', 100)).toMatchObject({ verdict: 'refused', reason: 'deferred_full' });
    expect((await pawl.view('r1')).inbox.deferred.length).toBe(100);
    await send(pawl, 'NEXT');
    await eventually(async () => expect((await pawl.view('r1')).inbox.deferred).toEqual([]));
    const view = await pawl.view('r1');
    expect(view).toMatchObject({ status: 'waiting', state: 'two' });
    expect(contextOf(view)['seen']).toHaveLength(100);
    await closeWell(world, pawl);
  });

  test.concurrent('deferred events that the run never took are answered when it ends', async () => {
    const { world, pawl } = await openDesk(
      kind,
      chart({
        events: { END: none, NEVER: { schema: none, whenIllegal: 'defer' } },
        config: { initial: 'a', context: {}, states: { a: { on: { END: 'b' } }, b: { type: 'final' } } },
      }),
    );
    expect(await pawl.send('r1', { type: 'NEVER' } as never, { eventId: 'n' })).toMatchObject({ verdict: 'deferred' });
    await send(pawl, 'END');
    expect(await pawl.send('r1', { type: 'NEVER' } as never, { eventId: 'n' })).toMatchObject({
      verdict: 'duplicate',
      reason: 'run_final',
    });
    await closeWell(world, pawl);
  });

  test.concurrent('of two with the same expectedSequence from two runtimes exactly one is applied', async () => {
    const { world, pawl } = await openDesk(kind, counter());
    const other = world.spawn({ leaseMs: 2_000 }).pawl;
    for (let round = 0; round < 12; round++) {
      const { sequence } = await pawl.view('r1');
      const verdicts = await Promise.all(
        [pawl, other].map((sender, n) => sendN(sender, 'ADD', n, { expectedSequence: sequence })),
      );
      expect(verdicts.map(({ verdict, reason }) => reason ?? verdict).toSorted()).toEqual([
        'applied',
        'stale_sequence',
      ]);
    }
    expect((contextOf(await pawl.view('r1'))['seen'] as unknown[]).length).toBe(12);
    expect(await sendN(pawl, 'ADD', 1, { expectedSequence: 1 })).toMatchObject({
      verdict: 'refused',
      reason: 'stale_sequence',
    });
    await closeWell(world, pawl);
  });

  test.concurrent('what is refused at the door is one entry with its reason, and names what is allowed', async () => {
    const { world, pawl } = await openDesk(kind, counter());
    const allowed = ['ADD', 'NEXT', 'GUARDED', 'OLD'];
    const before = (await entriesOf(pawl, 'r1')).length;
    expect(await sendN(pawl, 'MISSPELT', 1, { eventId: 'u' })).toMatchObject({
      verdict: 'refused',
      reason: 'unknown_event',
      allowed,
      state: 'one',
    });
    expect(await sendN(pawl, 'ADD', 'many', { eventId: 'i' })).toMatchObject({
      verdict: 'refused',
      reason: 'invalid_payload',
      allowed,
    });
    expect(await sendN(pawl, 'ADD', Number.NaN, { eventId: 'j' })).toMatchObject({ reason: 'invalid_payload' });
    expect(await sendN(pawl, 'MODEL', 1, { eventId: 'f' })).toMatchObject({
      verdict: 'refused',
      reason: 'forbidden',
      allowed,
    });
    expect(await sendN(pawl, 'xstate.stop', 1, { eventId: 's' })).toMatchObject({ reason: 'unknown_event' });
    expect(await sendN(pawl, '*', 1, { eventId: 'w' })).toMatchObject({ reason: 'unknown_event' });
    const entries = (await entriesOf(pawl, 'r1')).slice(before);
    expect(entries.every((entry) => entry.kind === 'refused')).toBe(true);
    expect(refusals(entries)).toEqual([
      { eventId: 'u', type: 'MISSPELT', reason: 'unknown_event' },
      { eventId: 'i', type: 'ADD', reason: 'invalid_payload' },
      { eventId: 'j', type: 'ADD', reason: 'invalid_payload' },
      { eventId: 'f', type: 'MODEL', reason: 'forbidden' },
      { eventId: 's', type: 'xstate.stop', reason: 'unknown_event' },
      { eventId: 'w', type: '*', reason: 'unknown_event' },
    ]);
    expect(await sendN(pawl, 'MISSPELT', 1, { eventId: 'u' })).toMatchObject({
      verdict: 'duplicate',
      reason: 'unknown_event',
    });
    await expect(pawl.send('r1', {} as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(pawl.send('r2', { type: 'ADD', n: 1 } as never)).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    await expect(sendN(pawl, 'ADD', 1, { eventId: 'with space' })).rejects.toMatchObject({ code: 'INVALID_ID' });
    const reserved = sendN(pawl, 'ADD', 1, { eventId: 'receipt:op_1:1:succeeded' });
    await expect(reserved).rejects.toMatchObject({ code: 'INVALID_ID' });
    await closeWell(world, pawl);
  });

  test.concurrent('events that are accepted and not reduced when the run ends are refused run_final', async () => {
    const world = openWorld<AgentDefinition>(kind, [counter()]);
    const outside = world.spawn({ idle: true }).pawl;
    await outside.start('chart', { runId: 'r1', input: {} as never });
    for (const [index, type] of ['NEXT', 'NEXT', 'ADD', 'ADD'].entries()) {
      const accepted = await outside.send('r1', { type, n: 1 } as never, { waitMs: 0, eventId: `e${index}` });
      expect(accepted).toMatchObject({ verdict: 'accepted', state: 'one', sequence: 1 });
    }
    const { pawl } = world.spawn({ leaseMs: 2_000 });
    await eventually(async () => expect((await world.test.store.load('r1'))?.facts.closed).toBe(true));
    expect(await pawl.view('r1')).toMatchObject({ status: 'done', inbox: { waiting: 0 } });
    expect(refusals(await entriesOf(pawl, 'r1'))).toEqual([
      { eventId: 'e2', type: 'ADD', reason: 'run_final' },
      { eventId: 'e3', type: 'ADD', reason: 'run_final' },
    ]);
    expect(await sendN(pawl, 'ADD', 1, { eventId: 'e3' })).toMatchObject({ verdict: 'duplicate', reason: 'run_final' });
    expect(await sendN(pawl, 'ADD', 1, { eventId: 'e9' })).toMatchObject({
      verdict: 'refused',
      reason: 'run_final',
      allowed: [],
    });
    await closeWell(world, pawl);
  });

  test.concurrent('1,000 events of ten senders through one run: each once, each sender’s in its order', async () => {
    const { world, pawl } = await openDesk(kind, counter());
    const other = world.spawn({ idle: true }).pawl;
    const numbers = Array.from({ length: 100 }, (_, n) => n);
    const sendAll = async (sender: number): Promise<void> => {
      const from = sender % 2 === 0 ? pawl : other;
      for (const n of numbers) await sendN(from, 'ADD', sender * 100 + n, { waitMs: 0, eventId: `e${sender}.${n}` });
    };
    await Promise.all(Array.from({ length: 10 }, (_, sender) => sendAll(sender)));
    await eventually(async () => expect((await pawl.view('r1')).inbox.waiting).toBe(0), 20_000);
    const seen = contextOf(await pawl.view('r1'))['seen'] as number[];
    expect(seen.length).toBe(1_000);
    for (let sender = 0; sender < 10; sender++) {
      expect(seen.filter((n) => Math.floor(n / 100) === sender).map((n) => n % 100)).toEqual(numbers);
    }
    expect((await pawl.view('r1')).sequence).toBe(1_001);
    await closeWell(world, pawl);
  });

  test.concurrent('timers and events are reduced by time, a timer first, however long nobody looked', async () => {
    const order = (name: string): never => keep('seen', (_event, { seen }: never) => [...(seen as string[]), name]);
    const agent = chart({
      events: { EVENT: none },
      config: {
        initial: 'a',
        context: { seen: [] },
        on: { EVENT: { actions: order('event') } },
        states: { a: { after: { 60: { actions: order('timer 60') }, 120: { actions: order('timer 120') } } } },
      },
    });
    const clock = simulatedClock(1_800_000_000_000);
    const world = openWorld<AgentDefinition>(kind, [agent], clock);
    const outside = world.spawn({ idle: true }).pawl;
    await outside.start('chart', { runId: 'r1', input: {} as never });
    for (const delayMs of [0, 60, 30, 60]) {
      await clock.advance(delayMs);
      await outside.send('r1', { type: 'EVENT' } as never, { waitMs: 0 });
    }
    world.spawn({ leaseMs: 2_000 });
    await clock.advance(10);
    expect(await outside.view('r1')).toMatchObject({
      context: { seen: ['event', 'timer 60', 'event', 'event', 'timer 120', 'event'] },
      inbox: { waiting: 0 },
    });
    expect(await outside.verify('r1')).toMatchObject({ ok: true });
    await world.test.remove();
  });

  test.concurrent('an event and a timer interrupt a call that is under way', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const agent = desk(scripted(script), {
      events: { NOTE: none },
      on: { NOTE: { actions: keep('noted', () => true) } },
      states: {
        acting: {
          invoke: invoke('act', { key: 'k', n: 1 }, { onDone: 'idle' }),
          after: { 400: 'late' },
        },
        late: { on: { END: 'done' } },
      },
    });
    const { world, pawl } = await openDesk(kind, agent, { leaseMs: 60_000 });
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    expect(await send(pawl, 'NOTE')).toMatchObject({ verdict: 'applied' });
    await eventually(async () => expect(await pawl.view('r1')).toMatchObject({ state: 'late' }));
    expect(script.calls[0]?.signal.aborted).toBe(true);
    open();
    await waitStatus(pawl, 'none');
    await closeWell(world, pawl);
  });
});
