/** Workers that stop, lose their store or their lease, and runs that would hold them up. */
import { describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '../../src/clock.ts';
import { PawlError } from '../../src/errors.ts';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { Commit } from '../../src/records.ts';
import type { RunView } from '../../src/runtime/view.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import { happened, unknown } from '../../src/tools/outcome.ts';
import { chart, entriesOf, eventually, gate, kindsOf, pause, Script, scripted } from './charts.ts';
import { closeWell, desk, ends, go, openDesk, reset, waitStatus, type Pawl } from './desk.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const deaf = (): Promise<never> => new Promise(() => {});

/** A store whose calls may be kept back or refused on their way. */
function intercept(store: Store, before: (method: string, args: unknown[]) => Promise<void> | void): Store {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      if (property === 'watch' || property === 'read') return value.bind(target) as unknown;
      return async (...args: unknown[]) => {
        await before(String(property), args);
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

async function startGo(pawl: Pawl, ...runIds: string[]): Promise<void> {
  for (const runId of runIds) {
    await pawl.start('chart', { runId, input: {} as never });
    await pawl.send(runId, { type: 'GO', key: 'k', n: 1 } as never, { waitMs: 0 });
  }
}

describe.each(STORES)('stopping on $name', (kind) => {
  test.concurrent('calls end, the lease is given back at once, and another worker goes on immediately', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const { world, pawl, worker } = await openDesk(kind, desk(scripted(script)), { leaseMs: 60_000 });
    await go(pawl, 'k');
    await waitStatus(pawl, 'attempted');
    const stopped = worker?.stop();
    const second = world.spawn({ leaseMs: 60_000 }).pawl;
    await pause(50);
    expect(script.calls[0]?.signal.aborted).toBe(false);
    open();
    await stopped;
    expect((await pawl.view('r1')).lease?.workerId).not.toBe(worker?.workerId);
    expect(await ends(second, 1)).toEqual(['one']);
    await go(second, 'other');
    expect(await ends(second, 2)).toEqual(['one', 'ok']);
    await closeWell(world, second);
  });

  test.concurrent(
    'a call that does not care about its signal is left behind after the grace, and found out by the next worker',
    async () => {
      const script = new Script([deaf], [() => happened({ id: 'found' })]);
      const act = scripted(script, { asks: true, timeoutMs: 60_000 });
      const { world, pawl, worker } = await openDesk(kind, desk(act), { leaseMs: 60_000 });
      await go(pawl, 'k');
      await waitStatus(pawl, 'attempted');
      const fromMs = performance.now();
      await worker?.stop({ graceMs: 50 });
      expect(performance.now() - fromMs).toBeLessThan(2_000);
      expect(script.calls[0]?.signal.aborted).toBe(true);
      expect((await pawl.view('r1')).lease).toBeNull();
      const second = world.spawn({ leaseMs: 2_000 }).pawl;
      expect(await ends(second, 1)).toEqual(['found']);
      await closeWell(world, second);
    },
  );

  test.concurrent('a run that is claimed while the worker stops is given back before it has stopped', async () => {
    const script = new Script([deaf]);
    const world = openWorld<AgentDefinition>(kind, [desk(scripted(script))]);
    const reached = gate();
    const { opened, open } = gate();
    const slow = intercept(world.test.again(), async (method) => {
      if (method !== 'claim') return;
      reached.open();
      await opened;
    });
    const { pawl } = world.spawn({ idle: true });
    await startGo(pawl, 'r1');
    const { worker } = world.spawn({ store: slow, leaseMs: 60_000 });
    await reached.opened;
    const stopped = worker?.stop({ graceMs: 50 });
    open();
    await stopped;
    expect((await pawl.view('r1')).lease).toBeNull();
    expect(script.calls).toEqual([]);
    await world.close();
  });

  test.concurrent('close() with a drive and open calls ends, and a drive ends at its own time', async () => {
    const script = new Script([deaf, deaf]);
    const world = openWorld<AgentDefinition>(kind, [desk(scripted(script, { timeoutMs: 1_500 }))]);
    const { pawl } = world.spawn({ idle: true, leaseMs: 60_000 });
    await startGo(pawl, 'r1');
    const fromMs = performance.now();
    await expect(pawl.drive('r1', { timeoutMs: 100 })).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' });
    expect(performance.now() - fromMs).toBeLessThan(1_000);
    await pawl.close();
    const after = await world.test.again().load('r1');
    expect(after?.facts.lease).toBeNull();
    await world.close();
  });

  test.concurrent('an unknown outcome that is not due yet: it is left to the next worker, who asks', async () => {
    let isStopped = false;
    const script = new Script([reset], [() => (isStopped ? happened({ id: 'found' }) : unknown())]);
    const slow = { asks: true, minDelayMs: 150, maxDelayMs: 150 };
    const { world, pawl, worker } = await openDesk(kind, desk(scripted(script, slow)), { leaseMs: 60_000 });
    await go(pawl, 'k');
    await eventually(() => expect(script.asked.length).toBeGreaterThan(0));
    await worker?.stop();
    isStopped = true;
    expect(await pawl.view('r1')).toMatchObject({ lease: null, openOperations: [{ status: 'unknown' }] });
    const second = world.spawn({ leaseMs: 2_000 }).pawl;
    expect(await ends(second, 1)).toEqual(['found']);
    await closeWell(world, second);
  });

  test.concurrent('a dispatcher that fails costs time at most', async () => {
    const testStore = kind.open();
    const down = (): Promise<never> => Promise.reject(new Error('no broker'));
    const dispatcher = { hint: down, listen: down, close: async () => {} };
    const agents = [desk(scripted(new Script()))];
    const pawl = createRuntime({ agents, store: testStore.again(), dispatcher, sweepMs: 25 });
    pawl.work();
    await startGo(pawl, 'r1');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    await pawl.close();
    await testStore.remove();
  });
});

describe.each(STORES)('a store that is away on $name', (kind) => {
  test.concurrent(
    'for longer than a lease: what came back is stored when it is there again, and one effect stands',
    async () => {
      const script = new Script([() => pause(50).then(() => ({ id: 'one' }))]);
      const world = openWorld<AgentDefinition>(kind, [desk(scripted(script))]);
      let isAway = false;
      const store = intercept(world.test.again(), () => {
        if (isAway) throw new PawlError('STORE_UNREACHABLE', 'connection refused');
      });
      const { pawl } = world.spawn({ store, leaseMs: 300 });
      await startGo(pawl, 'r1');
      await eventually(() => expect(script.calls.length).toBe(1));
      isAway = true;
      await pause(600);
      isAway = false;
      expect(await ends(pawl, 1)).toEqual(['one']);
      expect(script.calls.length).toBe(1);
      await closeWell(world, pawl);
    },
  );

  test.concurrent('for longer than the worker waits: the receipt is still given to the store', async () => {
    const answered = gate();
    const script = new Script([deaf, () => answered.opened.then(() => ({ id: 'two' }))]);
    // `neither`: only the receipt itself can tell that it happened.
    const world = openWorld<AgentDefinition>(kind, [desk(scripted(script, { timeoutMs: 100 }), {})]);
    const failing = new Script([() => answered.opened.then(() => ({ id: 'one' }))]);
    const agent = desk(scripted(failing, { timeoutMs: 10_000 }));
    let isAway = false;
    const gone = gate();
    const store = intercept(world.test.again(), (method) => {
      if (!isAway || method === 'receive') return;
      gone.open();
      throw new PawlError('STORE_READ_ONLY', 'the disk was remounted');
    });
    const first = world.spawn({ store, agents: [agent], leaseMs: 300, leave: true }).pawl;
    await startGo(first, 'r1');
    await eventually(() => expect(failing.calls.length).toBe(1));
    await first.send('r1', { type: 'GO', key: 'other', n: 1 } as never, { waitMs: 0 });
    isAway = true;
    await gone.opened;
    answered.open();
    const operationId = failing.calls[0]?.operationId ?? '';
    await eventually(async () => {
      expect(await world.test.store.receipt('r1', operationId)).toMatchObject({ outcome: 'succeeded' });
    });
    await world.close();
  });

  test.concurrent('a lease that is lost during a call: two holders of one run in one process, one effect', async () => {
    const { opened, open } = gate();
    const script: Script = new Script(
      [() => opened.then(() => ({ id: 'one' }))],
      [() => (script.asked.length > 2 ? happened({ id: 'one' }) : unknown())],
    );
    const world = openWorld<AgentDefinition>(kind, [
      desk(scripted(script, { asks: true, timeoutMs: 5_000, minDelayMs: 60, maxDelayMs: 60 })),
    ]);
    let held = false;
    const warnings: string[] = [];
    const store = intercept(world.test.again(), (method) => {
      if (method === 'renew' && !held) throw new PawlError('STORE_UNREACHABLE', 'connection reset');
    });
    const logger = { info() {}, warn: (message: string) => void warnings.push(message), error() {} };
    const { pawl } = world.spawn({ store, leaseMs: 300, logger });
    await startGo(pawl, 'r1');
    await eventually(() => expect(script.asked.length).toBeGreaterThan(0));
    held = true;
    open();
    expect(await ends(pawl, 1)).toEqual(['one']);
    expect(script.calls.length).toBe(1);
    await eventually(() => expect(warnings).toContain('the lease of a run was lost'));
    await closeWell(world, pawl);
  });
});

describe.each(STORES)('a poison run on $name', (kind) => {
  async function othersGetOn(pawl: Pawl): Promise<void> {
    for (const runId of ['a', 'b', 'c']) {
      await pawl.start('chart', { runId, input: {} as never });
      await go(pawl, runId, 1, runId);
    }
    for (const runId of ['a', 'b', 'c']) expect(await ends(pawl, 1, runId)).toEqual(['ok']);
  }

  test.concurrent('whose tool throws before it returns a promise starves nobody', async () => {
    const script = new Script();
    const act = scripted(script);
    const agent = desk(act);
    const { world, pawl } = await openDesk(kind, agent, { concurrency: 1 });
    script.execute = () => {
      throw new TypeError('x is not a function');
    };
    await go(pawl, 'k');
    expect(await waitStatus(pawl, 'escalated')).toMatchObject({ status: 'needs_human' });
    delete (script as Partial<Script>).execute;
    await othersGetOn(pawl);
    await closeWell(world, pawl);
  });

  test.concurrent('whose tool never ends holds one place only, until its time-out', async () => {
    const script = new Script([deaf]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { timeoutMs: 400 })), { concurrency: 2 });
    await go(pawl, 'k');
    await othersGetOn(pawl);
    expect(await waitStatus(pawl, 'escalated')).toMatchObject({ status: 'needs_human' });
    await closeWell(world, pawl);
  });

  test.concurrent(
    'whose claims end without a commit is held back, and goes to a person; a release lets it go on',
    async () => {
      const world = openWorld<AgentDefinition>(kind, [desk(scripted(new Script()))]);
      const { pawl } = world.spawn({ idle: true });
      await startGo(pawl, 'poison');
      // What workers that it killed have left behind.
      for (let claim = 0; claim < 101; claim++) {
        await world.test.store.claim({
          workerId: 'dead',
          leaseMs: 1,
          limit: 1,
          agents: { chart: [1] },
          runIds: ['poison'],
        });
        await pause(2);
      }
      const second = world.spawn({ leaseMs: 400, concurrency: 1 }).pawl;
      await othersGetOn(second);
      await second.wait('poison', {
        until: ((view: RunView) => view.status === 'needs_human') as never,
        timeoutMs: 5_000,
      });
      expect(await second.view('poison')).toMatchObject({ error: { code: 'RUNAWAY' }, next: { kind: 'await_human' } });
      await second.release('poison', { by: 'ann', reason: 'mended' });
      expect(await ends(second, 1, 'poison')).toEqual(['ok']);
      await closeWell(world, second, 'poison');
    },
  );

  test.concurrent('whose commit breaks the worker is stopped and says why; its event is answered', async () => {
    const world = openWorld<AgentDefinition>(kind, [desk(scripted(new Script()))]);
    const store = intercept(world.test.again(), (method, [commit]) => {
      const { entries = [] } = (method === 'commit' ? commit : {}) as Partial<Commit>;
      // An invariant that a fault of ours would break: it holds for this item, however often it is tried.
      if (entries.some((entry) => entry.kind === 'intended')) {
        throw new PawlError('OPERATION_ILLEGAL', "An operation that is 'intended' cannot take 'not_executed'");
      }
    });
    const { pawl } = world.spawn({ store, leaseMs: 400 });
    await pawl.start('chart', { runId: 'poison', input: {} as never });
    const verdict = await pawl.send('poison', { type: 'GO', key: 'k', n: 1 } as never);
    expect(verdict).toMatchObject({ verdict: 'refused', reason: 'step_threw', state: 'idle' });
    await closeWell(world, pawl, 'poison');
  });

  test.concurrent('nobody is busy while a provider is asked or a call is under way', async () => {
    let sleeps = 0;
    const clock: Clock = {
      ...systemClock,
      sleep: (delayMs, signal) => {
        sleeps++;
        return systemClock.sleep(delayMs, signal);
      },
    };
    const { opened, open } = gate();
    const script = new Script([reset], [() => opened.then(() => happened({ id: 'one' }))]);
    const testStore = kind.open();
    const pawl = createRuntime({
      agents: [desk(scripted(script, { asks: true }))],
      store: testStore.again(),
      clock,
      sweepMs: 1_000,
    });
    pawl.work();
    await startGo(pawl, 'r1');
    await eventually(() => expect(script.asked.length).toBe(1));
    const before = sleeps;
    await pause(300);
    expect(sleeps - before).toBeLessThan(10);
    open();
    expect(await ends(pawl, 1)).toEqual(['one']);
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'reconciled').length).toBe(1);
    await pawl.close();
    await testStore.remove();
  });

  test.concurrent('a store of nothing but waiting runs is not written', async () => {
    const world = openWorld<AgentDefinition>(kind, [chart({ config: { context: {} } })]);
    let commits = 0;
    const store = intercept(world.test.again(), (method) => void (commits += method === 'commit' ? 1 : 0));
    const { pawl } = world.spawn({ store });
    for (let index = 0; index < 5; index++) await pawl.start('chart', { runId: `r${index}`, input: {} as never });
    await pause(200);
    expect(commits).toBe(0);
    await world.close();
  });
});
