/** Cancel and deadline: nothing new is begun, what is under way is aborted and settled, and only then the run is final. */
import { describe, expect, test } from 'vitest';
import { happened, unknown } from '../../src/tools/outcome.ts';
import type { Json, LedgerEntry } from '../../src/records.ts';
import {
  chart,
  entriesOf,
  eventually,
  gate,
  invoke,
  keepEnd,
  kindsOf,
  none,
  Script,
  scripted,
  untilAborted,
} from './charts.ts';
import { absent, closeWell, desk, go, needsHuman, openDesk, reset, send, waitStatus, type Pawl } from './desk.ts';
import { STORES } from './stores.ts';

const cancel = (pawl: Pawl, runId = 'r1'): ReturnType<Pawl['cancel']> =>
  pawl.cancel(runId, { by: 'ann', reason: 'changed my mind' });

const cancelled = async (pawl: Pawl): Promise<void> => {
  const view = await pawl.wait('r1', { timeoutMs: 5_000 });
  expect(view).toMatchObject({
    status: 'cancelled',
    cancel: { by: 'ann', reason: 'changed my mind' },
    openOperations: [],
  });
};

/** After a cancel the machine does not move any more. */
const transitionsAfterCancel = (entries: LedgerEntry[]): LedgerEntry[] => {
  const at = entries.findIndex(({ kind }) => kind === 'cancel_requested');
  expect(at).toBeGreaterThan(0);
  return kindsOf(entries.slice(at), 'transitioned', 'attempted', 'intended');
};

describe.each(STORES)('cancel on $name', (kind) => {
  test.concurrent('before any attempt: no effect, final at once', async () => {
    const policy = {
      version: '1',
      check: () => ({ allow: false, reason: 'wait', retryAtMs: Date.now() + 60_000 }),
    } as const;
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
    await go(pawl, 'k');
    await waitStatus(pawl, 'intended');
    expect(await cancel(pawl)).toMatchObject({ verdict: 'applied', allowed: [] });
    await cancelled(pawl);
    expect(script.calls).toEqual([]);
    expect(transitionsAfterCancel(await entriesOf(pawl, 'r1'))).toEqual([]);
    expect(await world.test.store.due(10)).toEqual([]);
    await closeWell(world, pawl);
  });

  test.concurrent('between two attempts: withdrawn', async () => {
    const script = new Script([absent]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { minDelayMs: 60_000, maxDelayMs: 60_000 })));
    await go(pawl, 'k');
    await waitStatus(pawl, 'not_executed');
    await cancel(pawl);
    await cancelled(pawl);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent(
    'during a call, from another runtime: aborted within a second, cancelling until it is settled',
    async () => {
      const answer = gate<{ id: string }>();
      const script = new Script([({ signal }) => untilAborted({ signal }).catch(() => answer.opened)]);
      const { world, pawl } = await openDesk(kind, desk(scripted(script, { timeoutMs: 20_000 })), { leaseMs: 10_000 });
      await go(pawl, 'k');
      await waitStatus(pawl, 'attempted');
      const other = world.spawn({ idle: true }).pawl;
      const fromMs = performance.now();
      await cancel(other);
      await eventually(() => expect(script.calls[0]?.signal.aborted).toBe(true), 1_500);
      expect(performance.now() - fromMs).toBeLessThan(1_500);
      const view = await other.view('r1');
      expect(view).toMatchObject({
        status: 'running',
        cancel: { by: 'ann' },
        openOperations: [{ status: 'attempted' }],
      });
      // Twice, and while cancelling.
      expect(await cancel(other)).toMatchObject({ verdict: 'refused', reason: 'run_final' });
      expect(await send(other, 'LEAVE')).toMatchObject({ verdict: 'refused', reason: 'run_final' });
      answer.open({ id: 'in time' });
      await cancelled(other);
      const entries = await entriesOf(other, 'r1');
      expect(transitionsAfterCancel(entries)).toEqual([]);
      expect(kindsOf(entries, 'received')).toMatchObject([{ outcome: 'succeeded' }]);
      expect(kindsOf(entries, 'escalated').map((entry) => entry['reason'])).toEqual(['abandoned_success']);
      expect((await other.view('r1')).doNotRepeat).toMatchObject([{ outcome: 'succeeded' }]);
      // After it is final.
      expect(await cancel(other)).toMatchObject({ verdict: 'refused', reason: 'run_final' });
      await closeWell(world, pawl);
    },
  );

  test.concurrent('while the outcome is unknown: asked until it is settled, then cancelled', async () => {
    const script = new Script([reset], [() => unknown(), () => unknown(), () => happened({ id: 'found' })]);
    const { world, pawl } = await openDesk(
      kind,
      desk(scripted(script, { asks: true, minDelayMs: 40, maxDelayMs: 40 })),
    );
    await go(pawl, 'k');
    await waitStatus(pawl, 'unknown');
    await cancel(pawl);
    await cancelled(pawl);
    expect([script.calls.length, script.asked.length]).toEqual([1, 3]);
    await closeWell(world, pawl);
  });

  test.concurrent('of an idempotent write whose outcome is unknown: performed again, which settles it', async () => {
    const script = new Script([reset, () => ({ id: 'first outcome' })]);
    const slow = { idempotent: true, minDelayMs: 100, maxDelayMs: 100 };
    const { world, pawl } = await openDesk(kind, desk(scripted(script, slow)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'unknown');
    await cancel(pawl);
    await cancelled(pawl);
    expect(script.calls.length).toBe(2);
    await closeWell(world, pawl);
  });

  test.concurrent('while a person is asked about an operation: final when it is resolved', async () => {
    const script = new Script([reset]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    const { openOperations } = await waitStatus(pawl, 'escalated');
    expect(await cancel(pawl)).toMatchObject({ verdict: 'applied' });
    expect(await pawl.view('r1')).toMatchObject({ status: 'needs_human', cancel: { by: 'ann' } });
    const operationId = openOperations[0]?.operationId ?? '';
    await pawl.resolve('r1', operationId, { as: 'not_executed', by: 'ann', evidence: 'not in their books' });
    await cancelled(pawl);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('while the run is stopped: it need not be mended first; what was held back is answered', async () => {
    const agent = desk(scripted(new Script()), {
      events: { BAD: none },
      on: { BAD: { actions: keepEnd('ends') } },
      states: {
        acting: {
          invoke: invoke(
            'act',
            { key: 'k', n: 1 },
            {
              onDone: {
                target: 'idle',
                guard: () => {
                  throw new Error('a bug');
                },
              },
            },
          ),
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    await go(pawl, 'k');
    await needsHuman(pawl, 'step_threw');
    const held = pawl.send('r1', { type: 'END' } as never, { eventId: 'held' });
    await eventually(async () => expect((await pawl.view('r1')).inbox.deferred.length).toBe(1));
    await cancel(pawl);
    await cancelled(pawl);
    expect(await held).toMatchObject({ reason: 'run_final' });
    expect((await world.test.store.load('r1'))?.facts.closed).toBe(true);
    await closeWell(world, pawl);
  });

  test.concurrent('of a run whose machine is final while a write is still under way: refused', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'late' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    await send(pawl, 'END');
    expect(await cancel(pawl)).toMatchObject({ verdict: 'refused', reason: 'run_final' });
    open();
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done', cancel: null });
    await closeWell(world, pawl);
  });
});

describe.each(STORES)('a deadline on $name', (kind) => {
  const acting = (rest: object): object => ({
    invoke: invoke(
      'act',
      { key: 'k', n: 1 },
      {
        onDone: { target: 'done', actions: keepEnd('ends') },
        onError: { target: 'done', actions: keepEnd('ends') },
      },
    ),
    ...rest,
  });

  async function startLate(agent: ReturnType<typeof chart>, deadlineInMs: number) {
    const opened = await openDesk(kind, agent);
    await opened.pawl.start('chart', { runId: 'r2', input: {} as never, deadlineAtMs: Date.now() + deadlineInMs });
    return opened;
  }

  test.concurrent('is taken as DEADLINE_EXCEEDED where it is declared, and no attempt begins after it', async () => {
    const script = new Script();
    const agent = chart({
      events: { DEADLINE_EXCEEDED: none },
      actors: { act: scripted(script) },
      config: {
        initial: 'waiting',
        context: { ends: [] },
        states: {
          waiting: { on: { DEADLINE_EXCEEDED: 'cleaning' } },
          cleaning: acting({}),
          done: { type: 'final' },
        },
      },
    });
    const { world, pawl } = await startLate(agent, 60);
    expect(await pawl.wait('r2', { timeoutMs: 5_000 })).toMatchObject({
      status: 'done',
      context: { ends: ['TOOL_NOT_EXECUTED'] },
      cancel: null,
    });
    expect(script.calls).toEqual([]);
    await closeWell(world, pawl, 'r2');
  });

  test.concurrent.each([
    ['not declared', {}],
    ['declared, but not taken here', { DEADLINE_EXCEEDED: none }],
  ])('that is %s cancels with reason deadline', async (_what, events) => {
    const script = new Script([untilAborted, untilAborted], [() => happened({ id: 'found' })]);
    const agent = chart({
      events,
      actors: { act: scripted(script, { asks: true }) },
      config: { initial: 'acting', context: { ends: [] }, states: { acting: acting({}), done: { type: 'final' } } },
    });
    const { world, pawl } = await startLate(agent, 100);
    await pawl.cancel('r1', { by: 'test', reason: 'only r2 counts' });
    expect(await pawl.wait('r2', { timeoutMs: 5_000 })).toMatchObject({
      status: 'cancelled',
      cancel: { by: 'pawl', reason: 'deadline' },
    });
    await closeWell(world, pawl, 'r2');
  });

  test.concurrent('in the back-off of a retry: TOOL_NOT_EXECUTED to whoever waits, no further attempt', async () => {
    const script = new Script([absent, absent, absent]);
    const agent = chart({
      events: { DEADLINE_EXCEEDED: none },
      actors: { act: scripted(script, { minDelayMs: 150, maxDelayMs: 150 }) },
      config: {
        initial: 'acting',
        context: { ends: [] },
        // The deadline is noted; the state is not left.
        on: { DEADLINE_EXCEEDED: { actions: keepEnd('noted') } },
        states: { acting: acting({}), done: { type: 'final' } },
      },
    });
    const { world, pawl } = await startLate(agent, 100);
    await pawl.wait('r1', { timeoutMs: 5_000 });
    const attempts = script.calls.length;
    expect(await pawl.wait('r2', { timeoutMs: 5_000 })).toMatchObject({
      context: { ends: ['TOOL_NOT_EXECUTED'] as Json },
    });
    const entries = await entriesOf(pawl, 'r2');
    const passed = entries.findIndex((entry) => entry.kind === 'timer_fired');
    expect(kindsOf(entries.slice(passed), 'attempted')).toEqual([]);
    expect(attempts).toBeLessThanOrEqual(4);
    await closeWell(world, pawl, 'r2');
  });
});
