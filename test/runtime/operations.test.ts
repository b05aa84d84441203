/** DESIGN 3.2 row by row: which operation an invocation means, and what each outcome does to it. */
import { describe, expect, test } from 'vitest';
import { didNotHappen } from '../../src/tools/outcome.ts';
import type { Policy } from '../../src/tools/policy.ts';
import {
  chart,
  contextOf,
  entriesOf,
  gate,
  invoke,
  keepEnd,
  kindsOf,
  pause,
  Script,
  scripted,
  untilAborted,
} from './charts.ts';
import { absent, closeWell, desk, ends, go, openDesk, refused, reset, waitStatus } from './desk.ts';
import { STORES } from './stores.ts';

describe.each(STORES)('joining on $name', (kind) => {
  test.concurrent('two regions with one key cost one call, and both get the receipt', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const region = {
      initial: 'acting',
      states: {
        acting: { invoke: invoke('act', { key: 'k', n: 1 }, { onDone: { target: 'rest', actions: keepEnd('ends') } }) },
        rest: { type: 'final' },
      },
    };
    const agent = chart({
      actors: { act: scripted(script) },
      config: { type: 'parallel', context: { ends: [] }, states: { left: region, right: region } },
    });
    const { world, pawl } = await openDesk(kind, agent);
    const view = await waitStatus(pawl, 'attempted');
    expect(view.openOperations.length).toBe(1);
    open();
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({
      status: 'done',
      context: { ends: ['one', 'one'] },
    });
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent.each(['read', 'write'] as const)(
    'a %s in flight whose state is left and entered again is neither aborted nor repeated',
    async (effect) => {
      const { opened, open } = gate();
      const script = new Script([
        ({ signal }) => Promise.race([untilAborted({ signal }), opened.then(() => ({ id: 'one' }))]),
      ]);
      const { world, pawl } = await openDesk(kind, desk(scripted(script, { effect })));
      await go(pawl, 'k');
      await waitStatus(pawl, 'attempted');
      await go(pawl, 'k');
      open();
      expect(await ends(pawl, 1)).toEqual(['one']);
      expect(script.calls.map(({ signal }) => signal.aborted)).toEqual([false]);
      await closeWell(world, pawl);
    },
  );

  test.concurrent.each(['read', 'write'] as const)(
    'a %s that waits for its next attempt is joined when its state is entered again',
    async (effect) => {
      const script = new Script([effect === 'read' ? reset : absent]);
      const act = scripted(script, { effect, minDelayMs: 200, maxDelayMs: 200 });
      const { world, pawl } = await openDesk(kind, desk(act));
      await go(pawl, 'k');
      await waitStatus(pawl, 'not_executed');
      await go(pawl, 'k');
      expect(await ends(pawl, 1)).toEqual(['ok']);
      expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(new Set(script.calls.map(({ operationId }) => operationId)).size).toBe(1);
      await closeWell(world, pawl);
    },
  );

  test.concurrent(
    'an operation that was never attempted takes other input when its state is entered again',
    async () => {
      let allow = false;
      const policy: Policy = {
        version: '1',
        check: () => (allow ? { allow: true } : { allow: false, reason: 'closed', retryAtMs: Date.now() + 30 }),
      };
      const script = new Script();
      const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
      await go(pawl, 'k', 1);
      await waitStatus(pawl, 'intended');
      await go(pawl, 'k', 2);
      await pause(50);
      allow = true;
      expect(await ends(pawl, 1)).toEqual(['ok']);
      expect(script.calls.map(({ input }) => input.n)).toEqual([2]);
      // The stored key has the new input: it is what a repetition is compared with.
      await go(pawl, 'k', 2);
      expect(await ends(pawl, 2)).toEqual(['ok', 'ok']);
      await go(pawl, 'k', 1);
      expect(await ends(pawl, 3)).toEqual(['ok', 'ok', 'DUPLICATE_OPERATION']);
      expect(script.calls.length).toBe(1);
      await closeWell(world, pawl);
    },
  );

  test.concurrent('the same key with other input while a call is under way is DUPLICATE_OPERATION', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k', 1);
    await waitStatus(pawl, 'attempted');
    await go(pawl, 'k', 2);
    expect(await ends(pawl, 1)).toEqual(['DUPLICATE_OPERATION']);
    open();
    await waitStatus(pawl, 'none');
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });
});

describe.each(STORES)('repeating on $name', (kind) => {
  test.concurrent('an equal key after success takes the stored receipt, also after a restart', async () => {
    const script = new Script([() => ({ id: 'one' })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    await ends(pawl, 1);
    await go(pawl, 'k');
    expect(await ends(pawl, 2)).toEqual(['one', 'one']);
    await pawl.close();
    const second = world.spawn({ leaseMs: 2_000 }).pawl;
    await go(second, 'k');
    expect(await ends(second, 3)).toEqual(['one', 'one', 'one']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, second);
  });

  test.concurrent('an equal key after 101 others is found out by a conflict under one lease', async () => {
    const script = new Script([() => ({ id: 'first' })]);
    // One state after the other, so that one worker holds the run from the first key to the last.
    const keys = ['k', ...Array.from({ length: 101 }, (_, index) => `k${index}`), 'k'];
    const states = Object.fromEntries(
      keys.map((key, index) => [
        `s${index}`,
        {
          invoke: invoke('act', { key, n: 1 }, { onDone: { target: `s${index + 1}`, actions: keepEnd('ends') } }),
        },
      ]),
    );
    const agent = chart({
      actors: { act: scripted(script) },
      config: { initial: 's0', context: { ends: [] }, states: { ...states, [`s${keys.length}`]: { type: 'final' } } },
    });
    const { world, pawl } = await openDesk(kind, agent);
    const view = await pawl.wait('r1', { timeoutMs: 10_000 });
    expect(script.calls.length).toBe(102);
    expect((contextOf(view)['ends'] as string[]).filter((id) => id === 'first').length).toBe(2);
    await closeWell(world, pawl);
  });

  test.concurrent('other input after success is DUPLICATE_OPERATION with the receipt in its details', async () => {
    const script = new Script([() => ({ id: 'one' })]);
    const seen: unknown[] = [];
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k', 1);
    await ends(pawl, 1);
    await go(pawl, 'k', 2);
    expect(await ends(pawl, 2)).toEqual(['one', 'DUPLICATE_OPERATION']);
    for (const entry of kindsOf(await entriesOf(pawl, 'r1'), 'transitioned')) {
      const { error } = entry['event'] as { error?: { details: unknown } };
      if (error) seen.push(error.details);
    }
    expect(seen).toMatchObject([{ status: 'succeeded', receipt: { outcome: 'succeeded', output: { id: 'one' } } }]);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('after `failed` the same key is a new operation of the next generation', async () => {
    const script = new Script([refused, refused]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    for (const count of [1, 2, 3]) {
      await go(pawl, 'k');
      await ends(pawl, count);
    }
    expect(await ends(pawl, 3)).toEqual(['TOOL_FAILED', 'TOOL_FAILED', 'ok']);
    expect(new Set(script.calls.map(({ operationId }) => operationId)).size).toBe(3);
    expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
    const intents = kindsOf(await entriesOf(pawl, 'r1'), 'intended');
    expect(intents.map((entry) => entry['generation'])).toEqual([1, 2, 3]);
    await closeWell(world, pawl);
  });

  test.concurrent('after `not_executed` the same operation is reopened and its attempt numbers go on', async () => {
    const script = new Script([absent, absent]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { maxAttempts: 2 })));
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['TOOL_NOT_EXECUTED']);
    await pawl.close();
    const second = world.spawn({ leaseMs: 2_000 }).pawl;
    // Other input is no duplicate of what did not happen.
    await go(second, 'k', 2);
    expect(await ends(second, 2)).toEqual(['TOOL_NOT_EXECUTED', 'ok']);
    expect(script.calls.map(({ attempt, input }) => [attempt, input.n])).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
    ]);
    expect(new Set(script.calls.map(({ operationId }) => operationId)).size).toBe(1);
    await closeWell(world, second);
  });

  test.concurrent('after `withdrawn` too, with attempts that were proved absent', async () => {
    const script = new Script([absent]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { minDelayMs: 60_000, maxDelayMs: 60_000 })));
    await go(pawl, 'k');
    await waitStatus(pawl, 'not_executed');
    expect(await pawl.send('r1', { type: 'LEAVE' } as never)).toMatchObject({ verdict: 'applied' });
    await waitStatus(pawl, 'none');
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(script.calls[0]?.operationId).toBe(script.calls[1]?.operationId);
    await closeWell(world, pawl);
  });
});

describe.each(STORES)('attempts on $name', (kind) => {
  test.concurrent(
    'after maxAttempts that did not happen the chart gets TOOL_NOT_EXECUTED; the back-off is respected',
    async () => {
      const script = new Script([absent, absent, absent, absent]);
      const act = scripted(script, { maxAttempts: 3, minDelayMs: 80, maxDelayMs: 160 });
      const { world, pawl } = await openDesk(kind, desk(act));
      await go(pawl, 'k');
      expect(await ends(pawl, 1)).toEqual(['TOOL_NOT_EXECUTED']);
      expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
      const [one, two, three] = script.calls.map(({ atMs }) => atMs) as [number, number, number];
      expect(two - one).toBeGreaterThan(75);
      expect(three - two).toBeGreaterThan(75);
      await closeWell(world, pawl);
    },
  );

  test.concurrent('retries begin anew for each operation', async () => {
    const script = new Script([absent, () => ({ id: 'a' }), absent, () => ({ id: 'b' })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { maxAttempts: 2 })));
    await go(pawl, 'a');
    await ends(pawl, 1);
    await go(pawl, 'b');
    expect(await ends(pawl, 2)).toEqual(['a', 'b']);
    await closeWell(world, pawl);
  });

  test.concurrent('input that does not fit is TOOL_INPUT_INVALID, with no intent', async () => {
    const script = new Script();
    const act = scripted(script);
    const agent = chart({
      actors: { act },
      config: {
        initial: 'acting',
        context: { ends: [] },
        states: {
          acting: {
            invoke: invoke('act', { key: 'k', n: 'many' }, { onError: { target: 'done', actions: keepEnd('ends') } }),
          },
          done: { type: 'final' },
        },
      },
    });
    const { world, pawl } = await openDesk(kind, agent);
    expect(await pawl.wait('r1', { timeoutMs: 5_000 })).toMatchObject({
      status: 'done',
      context: { ends: ['TOOL_INPUT_INVALID'] },
    });
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'intended')).toEqual([]);
    expect(script.calls).toEqual([]);
    await closeWell(world, pawl);
  });

  test.concurrent('output of a read that does not fit is TOOL_OUTPUT_INVALID at onError', async () => {
    const script = new Script([() => ({ id: 7 })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { effect: 'read' })));
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['TOOL_OUTPUT_INVALID']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('output of a write that does not fit needs a person, who gives one that does', async () => {
    const script = new Script([() => ({ id: 7 })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)));
    await go(pawl, 'k');
    const view = await waitStatus(pawl, 'escalated');
    expect(view).toMatchObject({ status: 'needs_human', state: 'acting', next: { kind: 'await_human', tool: 'act' } });
    expect(view.doNotRepeat).toMatchObject([{ tool: 'act', outcome: 'unknown' }]);
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'received').at(-1)).toMatchObject({ receipt: { output: { id: 7 } } });
    const operationId = view.openOperations[0]?.operationId ?? '';
    const given = { as: 'succeeded', by: 'ann', evidence: 'read at the provider' } as const;
    await expect(pawl.resolve('r1', operationId, { ...given, output: { id: 8 } })).rejects.toMatchObject({
      code: 'TOOL_OUTPUT_INVALID',
    });
    // A release cannot say what the value was.
    await pawl.release('r1', { by: 'ann', reason: 'try' });
    expect(await pawl.view('r1')).toMatchObject({ status: 'needs_human' });
    expect(await pawl.resolve('r1', operationId, { ...given, output: { id: '7' } })).toMatchObject({
      verdict: 'applied',
    });
    expect(await ends(pawl, 1)).toEqual(['7']);
    const after = await pawl.view('r1');
    expect(after).toMatchObject({ status: 'waiting', error: null, lastConfirmedEffect: { operationId } });
    expect(after.waitingFor).toEqual(['event GO|END']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('a read that gives no answer in time is TOOL_TIMEOUT after its attempts', async () => {
    const script = new Script([untilAborted, untilAborted]);
    const { world, pawl } = await openDesk(
      kind,
      desk(scripted(script, { effect: 'read', timeoutMs: 30, maxAttempts: 2 })),
    );
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['TOOL_TIMEOUT']);
    expect(script.calls.length).toBe(2);
    expect(script.calls[1]?.signal.aborted).toBe(true);
    await closeWell(world, pawl);
  });

  test.concurrent('a write that cannot be asked is performed again under its id when it is idempotent', async () => {
    const script = new Script([reset, reset, () => ({ id: 'third' })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { idempotent: true })));
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['third']);
    expect(script.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(script.calls.map(({ operationId }) => operationId)).size).toBe(1);
    await closeWell(world, pawl);
  });

  test.concurrent('an idempotent write that never answers goes to a person after reconcileForMs', async () => {
    const script = new Script(Array.from({ length: 1000 }, () => reset));
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { idempotent: true, reconcileForMs: 100 })));
    await go(pawl, 'k');
    expect(await waitStatus(pawl, 'escalated')).toMatchObject({ status: 'needs_human' });
    await closeWell(world, pawl);
  });

  test.concurrent('absent is believed only from a question that began after the window', async () => {
    const script = new Script([reset, () => ({ id: 'again' })], [() => didNotHappen()]);
    const { world, pawl } = await openDesk(
      kind,
      desk(scripted(script, { asks: true, timeoutMs: 120, settleAfterMs: 80 })),
    );
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['again']);
    const [first, second] = kindsOf(await entriesOf(pawl, 'r1'), 'attempted').map(({ atMs }) => atMs);
    expect(Number(second) - Number(first)).toBeGreaterThanOrEqual(200);
    await closeWell(world, pawl);
  });

  test.concurrent('a final absence is believed at once', async () => {
    const script = new Script([reset, () => ({ id: 'again' })], [() => didNotHappen({ final: true })]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { asks: true, timeoutMs: 20_000 })));
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['again']);
    await closeWell(world, pawl);
  });
});
