/** DESIGN 3.2: receipts are facts. Those that come late, twice, from a worker that is gone, or against another one. */
import { describe, expect, test } from 'vitest';
import { happened, unknown } from '../../src/tools/outcome.ts';
import { tool } from '../../src/tools/tool.ts';
import { z } from 'zod';
import { entriesOf, eventually, gate, kindsOf, none, Script, scripted, untilAborted } from './charts.ts';
import { absent, closeWell, desk, ends, go, openDesk, receiptOf, refused, reset, waitStatus } from './desk.ts';
import { STORES } from './stores.ts';

const reasonsOf = (entries: Awaited<ReturnType<typeof entriesOf>>): unknown[] =>
  kindsOf(entries, 'escalated').map((entry) => entry['reason']);

describe.each(STORES)('late receipts on $name', (kind) => {
  test.concurrent.each(['not_executed', 'withdrawn'] as const)(
    'a success stored after the operation was closed as %s is reported, and its receipt is taken when the key comes again',
    async (closedAs) => {
      const script = new Script([absent]);
      const long = { minDelayMs: 60_000, maxDelayMs: 60_000 };
      const act = scripted(script, closedAs === 'not_executed' ? { maxAttempts: 1 } : long);
      const { world, pawl } = await openDesk(kind, desk(act));
      await go(pawl, 'k');
      if (closedAs === 'withdrawn') {
        await waitStatus(pawl, 'not_executed');
        await pawl.send('r1', { type: 'LEAVE' } as never);
      }
      await waitStatus(pawl, 'none');
      const operationId = script.calls[0]?.operationId ?? '';
      expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'succeeded'))).toBe('stored');
      const reported = await eventually(async () => {
        const entries = await entriesOf(pawl, 'r1');
        expect(reasonsOf(entries)).toEqual(['late_success']);
        return entries;
      });
      expect(kindsOf(reported, 'escalated')).toMatchObject([{ operationId }]);
      expect(await pawl.view('r1')).toMatchObject({ status: 'waiting', state: 'idle' });
      await go(pawl, 'k');
      expect((await ends(pawl, closedAs === 'withdrawn' ? 1 : 2)).at(-1)).toBe('late');
      expect(script.calls.length).toBe(1);
      expect((await pawl.view('r1')).doNotRepeat).toMatchObject([{ operationId, tool: 'act', outcome: 'succeeded' }]);
      await closeWell(world, pawl);
    },
  );

  test.concurrent(
    'a refusal stored after the operation was withdrawn makes the next one a new generation',
    async () => {
      const script = new Script([absent]);
      const act = scripted(script, { minDelayMs: 60_000, maxDelayMs: 60_000 });
      const { world, pawl } = await openDesk(kind, desk(act));
      await go(pawl, 'k');
      await waitStatus(pawl, 'not_executed');
      await pawl.send('r1', { type: 'LEAVE' } as never);
      await waitStatus(pawl, 'none');
      const operationId = script.calls[0]?.operationId ?? '';
      expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'failed'))).toBe('stored');
      await go(pawl, 'k');
      expect(await ends(pawl, 1)).toEqual(['ok']);
      expect(script.calls[1]?.operationId).not.toBe(operationId);
      await closeWell(world, pawl);
    },
  );

  test.concurrent('receipts are compared by outcome: the first stored output stands', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'mine' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    const operationId = script.calls[0]?.operationId ?? '';
    expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'succeeded', 'theirs'))).toBe('stored');
    expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'succeeded', 'again'))).toBe('same');
    expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'failed'))).toBe('conflict');
    expect(await ends(pawl, 1)).toEqual(['theirs']);
    open();
    await go(pawl, 'k');
    expect(await ends(pawl, 2)).toEqual(['theirs', 'theirs']);
    // The same success in the worker's own hand is nothing new.
    await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
    expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual([]);
    await closeWell(world, pawl);
  });

  test.concurrent('a success found by reconcile and given by the worker that was gone is one success', async () => {
    const { opened, open } = gate();
    const script = new Script([reset], [() => opened.then(() => happened({ id: 'found' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { asks: true })));
    await go(pawl, 'k');
    await eventually(() => expect(script.asked.length).toBe(1));
    const operationId = script.calls[0]?.operationId ?? '';
    await world.test.store.receive('r1', receiptOf(operationId, 1, 'succeeded', 'theirs'));
    expect(await ends(pawl, 1)).toEqual(['theirs']);
    open();
    await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
    expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual([]);
    await closeWell(world, pawl);
  });

  test.concurrent(
    'an absence that is stored twice, by reconcile and by the worker that was gone, is one absence',
    async () => {
      const script = new Script([absent]);
      const { world, pawl } = await openDesk(kind, desk(scripted(script, { minDelayMs: 150, maxDelayMs: 150 })));
      await go(pawl, 'k');
      const view = await waitStatus(pawl, 'not_executed');
      const { operationId = '' } = view.openOperations[0] ?? {};
      // Another outcome of the same attempt: nothing was stored for it under this name yet.
      await world.test.store.accept('r1', {
        eventId: 'stale-worker',
        by: null,
        body: { kind: 'receipt', receipt: receiptOf(operationId, 1, 'not_executed') },
      });
      expect(await ends(pawl, 1)).toEqual(['ok']);
      expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
      await closeWell(world, pawl);
    },
  );
});

describe.each(STORES)('a success of an earlier attempt after not_executed on $name', (kind) => {
  test.concurrent('is taken when no later attempt was written', async () => {
    const script = new Script([absent]);
    const act = scripted(script, { minDelayMs: 60_000, maxDelayMs: 60_000 });
    const { world, pawl } = await openDesk(kind, desk(act));
    await go(pawl, 'k');
    await waitStatus(pawl, 'not_executed');
    await world.test.store.receive('r1', receiptOf(script.calls[0]?.operationId ?? '', 1, 'succeeded'));
    expect(await ends(pawl, 1)).toEqual(['late']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('is taken when the tool is idempotent', async () => {
    const { opened, open } = gate();
    const script = new Script([absent, () => opened.then(() => ({ id: 'second' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { idempotent: true })));
    await go(pawl, 'k');
    await eventually(() => expect(script.calls.length).toBe(2));
    await world.test.store.receive('r1', receiptOf(script.calls[0]?.operationId ?? '', 1, 'succeeded'));
    expect(await ends(pawl, 1)).toEqual(['late']);
    open();
    await closeWell(world, pawl);
  });

  test.concurrent.each(['asked', 'unaskable'] as const)(
    'goes to a person with both facts when a later attempt of an %s tool was written; resolve goes on',
    async (how) => {
      const { opened, open } = gate();
      const script = new Script([absent, () => opened.then(() => ({ id: 'second' }))], [() => unknown()]);
      const { world, pawl } = await openDesk(kind, desk(scripted(script, { asks: how === 'asked' })));
      await go(pawl, 'k');
      await eventually(() => expect(script.calls.length).toBe(2));
      const operationId = script.calls[0]?.operationId ?? '';
      await world.test.store.receive('r1', receiptOf(operationId, 1, 'succeeded'));
      expect(await waitStatus(pawl, 'escalated')).toMatchObject({
        status: 'needs_human',
        error: { code: 'CONFLICTING_ATTEMPTS' },
      });
      // The later one may succeed as well: that is the case a person was asked about.
      open();
      await eventually(async () => expect((await pawl.view('r1')).lease).toBeNull());
      const facts = kindsOf(await entriesOf(pawl, 'r1'), 'received', 'conflict');
      expect(facts.filter((entry) => entry['outcome'] === 'succeeded').map((entry) => entry['attempt'])).toEqual([
        1, 2,
      ]);
      expect(facts.some((entry) => entry.kind === 'conflict')).toBe(true);
      // Whoever claims it next finds the receipt stored, and leaves it to the person.
      const { length } = await entriesOf(pawl, 'r1');
      await pawl.drive('r1', { until: 'idle', timeoutMs: 2_000 });
      expect((await entriesOf(pawl, 'r1')).length).toBe(length);
      const given = { by: 'ann', evidence: 'one was refunded by hand' };
      await expect(pawl.resolve('r1', operationId, { as: 'failed', ...given })).rejects.toMatchObject({
        code: 'OPERATION_SETTLED',
      });
      const resolved = await pawl.resolve('r1', operationId, { as: 'succeeded', output: { id: 'one' }, ...given });
      expect(resolved).toMatchObject({ verdict: 'applied' });
      expect(await ends(pawl, 1)).toEqual(['late']);
      expect(await pawl.view('r1')).toMatchObject({ status: 'waiting', error: null });
      await closeWell(world, pawl);
    },
  );
});

describe.each(STORES)('facts against each other on $name', (kind) => {
  test.concurrent('a success in hand whose operation is stored as failed is reported with both facts', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'mine' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    const operationId = script.calls[0]?.operationId ?? '';
    expect(await world.test.store.receive('r1', receiptOf(operationId, 1, 'failed'))).toBe('stored');
    expect(await ends(pawl, 1)).toEqual(['TOOL_FAILED']);
    open();
    await eventually(async () => expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual(['conflicting_outcomes']));
    const [conflict] = kindsOf(await entriesOf(pawl, 'r1'), 'conflict');
    expect(conflict).toMatchObject({
      operationId,
      stored: 'failed',
      receipt: { outcome: 'succeeded', output: { id: 'mine' } },
    });
    expect(await pawl.view('r1')).toMatchObject({ status: 'waiting', state: 'idle' });
    await closeWell(world, pawl);
  });

  test.concurrent('what a person said is failed and the provider then says has happened is reported', async () => {
    const { opened, open } = gate();
    const script = new Script([reset], [() => opened.then(() => happened({ id: 'found' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { asks: true })));
    await go(pawl, 'k');
    await eventually(() => expect(script.asked.length).toBe(1));
    const operationId = script.calls[0]?.operationId ?? '';
    await pawl.resolve('r1', operationId, { as: 'failed', by: 'ann', evidence: 'I think so' });
    expect(await ends(pawl, 1)).toEqual(['TOOL_FAILED']);
    open();
    await eventually(async () => expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual(['late_success']));
    await closeWell(world, pawl);
  });

  test.concurrent('the answer of a read that nobody waits for is worth nothing', async () => {
    const { opened, open } = gate();
    const other = gate();
    const reading = new Script([() => opened.then(() => ({ id: 'read' }))]);
    const agent = desk(scripted(reading, { effect: 'read' }), {
      on: { NOTE: { actions: [] } },
      events: { NOTE: none },
    });
    const { world, pawl } = await openDesk(kind, agent);
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    // Stored before the read answers, reduced after it has: the answer is in hand when its state is left.
    await world.test.store.accept('r1', { eventId: 'e1', by: null, body: { kind: 'event', event: { type: 'LEAVE' } } });
    open();
    await eventually(async () => expect(await pawl.view('r1')).toMatchObject({ state: 'idle', lease: null }));
    other.open();
    expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual([]);
    // Nor is it taken later: it is read again.
    await go(pawl, 'k');
    expect((await ends(pawl, 1)).at(-1)).toMatch(/ok|read/);
    await closeWell(world, pawl);
  });

  test.concurrent('a success that nobody waits for is reported by `escalated`, and the run goes on', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'done' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    await pawl.send('r1', { type: 'LEAVE' } as never);
    expect(script.calls[0]?.signal.aborted).toBe(true);
    await go(pawl, 'other');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    open();
    await eventually(async () => expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual(['abandoned_success']));
    expect(await pawl.send('r1', { type: 'END' } as never)).toMatchObject({ verdict: 'applied' });
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done' });
    await closeWell(world, pawl);
  });

  test.concurrent(
    'a write in flight is aborted when its state is left, and settled before the run is final',
    async () => {
      const script = new Script([untilAborted], [() => unknown(), () => happened({ id: 'found' })]);
      const { world, pawl } = await openDesk(
        kind,
        desk(scripted(script, { asks: true, minDelayMs: 60, maxDelayMs: 60 })),
      );
      await go(pawl, 'k');
      await waitStatus(pawl, 'attempted');
      expect(await pawl.send('r1', { type: 'END' } as never)).toMatchObject({ verdict: 'applied', state: 'done' });
      expect(await pawl.view('r1')).toMatchObject({ status: 'running', state: 'done', next: { kind: 'reconcile' } });
      expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done' });
      expect(script.asked.length).toBe(2);
      const entries = await entriesOf(pawl, 'r1');
      expect(entries.findIndex(({ kind: of }) => of === 'received')).toBeLessThan(
        entries.findIndex(({ kind: of }) => of === 'finished'),
      );
      await closeWell(world, pawl);
    },
  );

  test.concurrent('a refused write whose state is left ends the run without a word', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(refused)]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    await pawl.send('r1', { type: 'END' } as never);
    open();
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({ status: 'done' });
    expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual([]);
    await closeWell(world, pawl);
  });

  test.concurrent(
    'an invocation that waits behind an escalated operation gets its receipt when a person resolves it',
    async () => {
      const script = new Script([reset]);
      const { world, pawl } = await openDesk(kind, desk(scripted(script)));
      await go(pawl, 'k');
      const { openOperations } = await waitStatus(pawl, 'escalated');
      const operationId = openOperations[0]?.operationId ?? '';
      await go(pawl, 'k');
      expect((await pawl.view('r1')).waitingFor).toContain(`blocked_by ${operationId}`);
      await pawl.resolve('r1', operationId, {
        as: 'succeeded',
        output: { id: 'seen' },
        by: 'ann',
        evidence: 'a receipt',
      });
      expect(await ends(pawl, 1)).toEqual(['seen']);
      expect(script.calls.length).toBe(1);
      await closeWell(world, pawl);
    },
  );

  test.concurrent('a compensation that cannot be planned does not lose the receipt', async () => {
    const io = { input: z.object({ key: z.string(), n: z.int() }), output: z.object({ id: z.string() }) };
    const base = { version: '1', effect: 'write', timeoutMs: 1_000, ...io } as const;
    const undo = tool({ name: 'undo', ...base, execute: async () => ({ id: 'undone' }) });
    const act = tool({
      name: 'act',
      ...base,
      key: ({ input }) => [input.key],
      execute: async () => ({ id: 'ok' }),
      compensate: {
        tool: undo,
        input: () => {
          throw new Error('no way back');
        },
      },
    });
    const { world, pawl } = await openDesk(kind, desk(act));
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    expect(reasonsOf(await entriesOf(pawl, 'r1'))).toEqual(['compensation_invalid']);
    await closeWell(world, pawl);
  });
});
