/** DESIGN 3.2: what is asked before an attempt. Policy, and the reservation of a key in tenant scope. */
import { describe, expect, test } from 'vitest';
import type { Policy, PolicyQuestion, PolicyVerdict } from '../../src/tools/policy.ts';
import { entriesOf, eventually, gate, kindsOf, pause, Script, scripted } from './charts.ts';
import { absent, closeWell, desk, ends, go, openDesk, refused, waitStatus, type Pawl } from './desk.ts';
import { STORES, type StoreKind } from './stores.ts';
import type { World } from './world.ts';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';

const deny: PolicyVerdict = { allow: false, reason: 'closed on Sundays' };

/** Answers in turn, then allows. */
function policyOf(answers: ((question: PolicyQuestion) => Promise<PolicyVerdict> | PolicyVerdict)[]) {
  const asked: PolicyQuestion[] = [];
  const policy: Policy = {
    version: '1',
    check(question) {
      asked.push(question);
      return (answers.shift() ?? (() => ({ allow: true })))(question);
    },
  };
  return { asked, policy };
}

describe.each(STORES)('policy on $name', (kind) => {
  test.concurrent('is asked before each attempt', async () => {
    const { asked, policy } = policyOf([]);
    const script = new Script([absent]);
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
    await go(pawl, 'k', 7);
    await ends(pawl, 1);
    expect(asked.length).toBe(2);
    expect(asked[0]).toMatchObject({
      run: { runId: 'r1', tenant: 'default', agent: 'chart' },
      tool: { name: 'act', version: '1', effect: 'write' },
      input: { key: 'k', n: 7 },
      operationId: script.calls[0]?.operationId,
    });
    await closeWell(world, pawl);
  });

  test.concurrent('that denies gives POLICY_DENIED at onError and no attempt', async () => {
    const { policy } = policyOf([() => deny]);
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['POLICY_DENIED']);
    const entries = await entriesOf(pawl, 'r1');
    expect(kindsOf(entries, 'attempted')).toEqual([]);
    expect(kindsOf(entries, 'withdrawn').length).toBe(1);
    expect(script.calls).toEqual([]);
    // It was withdrawn, not refused by the provider: the same operation may be asked for again.
    await go(pawl, 'k');
    expect(await ends(pawl, 2)).toEqual(['POLICY_DENIED', 'ok']);
    await closeWell(world, pawl);
  });

  test.concurrent('that denies until a time leaves the operation intended until then', async () => {
    let untilMs = 0;
    const { asked, policy } = policyOf([() => ({ ...deny, retryAtMs: (untilMs = Date.now() + 1_000) })]);
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
    await go(pawl, 'k');
    await eventually(async () => {
      const { openOperations } = await pawl.view('r1');
      expect(openOperations[0]).toMatchObject({
        status: 'intended',
        reason: 'policy: closed on Sundays',
        notBeforeMs: untilMs,
      });
    });
    expect(await ends(pawl, 1)).toEqual(['ok']);
    expect(Date.now()).toBeGreaterThanOrEqual(untilMs);
    expect(asked.length).toBe(2);
    await closeWell(world, pawl);
  });

  test.concurrent.each([
    ['throws', () => Promise.reject(new Error('policy server down'))],
    ['answers something else', () => 'yes' as never],
  ] as const)('that %s leaves the operation intended and due again, also after a restart', async (_what, answer) => {
    const { policy } = policyOf([answer]);
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy });
    await go(pawl, 'k');
    await waitStatus(pawl, 'intended');
    await pawl.close();
    expect((await world.test.again().due(10)).map(({ runId }) => runId)).toEqual(['r1']);
    const again = policyOf([() => deny]);
    const second = world.spawn({ leaseMs: 2_000, policy: again.policy }).pawl;
    expect(await ends(second, 1)).toEqual(['POLICY_DENIED']);
    expect(script.calls).toEqual([]);
    expect(again.asked.length).toBe(1);
    await closeWell(world, second);
  });

  test.concurrent('is asked again when the worker that was allowed to call has died', async () => {
    const script = new Script();
    const agent = desk(scripted(script, { effect: 'read', timeoutMs: 100 }));
    const { world, pawl, frozen } = await openDesk(kind, agent, { leaseMs: 300, freezeAt: { point: 'B2' } });
    void pawl.send('r1', { type: 'GO', key: 'k', n: 1 } as never, { waitMs: 0 });
    await frozen;
    const { asked, policy } = policyOf([() => deny]);
    const second = world.spawn({ leaseMs: 2_000, policy }).pawl;
    expect(await ends(second, 1)).toEqual(['POLICY_DENIED']);
    expect([asked.length, script.calls.length]).toEqual([1, 0]);
    await closeWell(world, second);
  });

  test.concurrent('that takes longer than the tool may does not eat the tool’s time', async () => {
    const { policy } = policyOf([() => pause(120).then(() => ({ allow: true }))]);
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script, { timeoutMs: 100 })), { policy });
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    expect(script.calls.map(({ attempt }) => attempt)).toEqual([1]);
    await closeWell(world, pawl);
  });

  test.concurrent('that never answers holds neither the lease nor a place for ever', async () => {
    const { asked, policy } = policyOf([() => new Promise(() => {})]);
    const script = new Script();
    const { world, pawl } = await openDesk(kind, desk(scripted(script)), { policy, leaseMs: 400, concurrency: 1 });
    await go(pawl, 'k');
    expect(await ends(pawl, 1)).toEqual(['ok']);
    expect(asked.length).toBe(2);
    expect(kindsOf(await entriesOf(pawl, 'r1'), 'attempted').length).toBe(1);
    await closeWell(world, pawl);
  });
});

/** Two runs of one tenant that mean the same action; the first one holds the key. */
async function two(
  kind: StoreKind,
  script: Script,
  options: Parameters<typeof scripted>[1] = {},
): Promise<{ world: World<AgentDefinition>; pawl: Pawl }> {
  const { world, pawl } = await openDesk(kind, desk(scripted(script, { ...options, scope: 'tenant' })));
  await pawl.start('chart', { runId: 'r2', input: {} as never });
  await go(pawl, 'k', 1, 'r1');
  await eventually(() => expect(script.calls.length).toBe(1));
  return { world, pawl };
}

describe.each(STORES)('tenant scope on $name', (kind) => {
  test.concurrent('the second run is blocked, never calls, and gets the receipt when the first succeeds', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const { world, pawl } = await two(kind, script);
    await go(pawl, 'k', 1, 'r2');
    const view = await waitStatus(pawl, 'blocked', 'r2');
    expect(view).toMatchObject({ status: 'waiting', next: { kind: 'await_event' } });
    expect(kindsOf(await entriesOf(pawl, 'r2'), 'blocked')).toMatchObject([{ owner: 'r1' }]);
    await pause(600);
    expect(script.calls.length).toBe(1);
    open();
    expect(await ends(pawl, 1, 'r1')).toEqual(['one']);
    expect(await ends(pawl, 1, 'r2')).toEqual(['one']);
    // A third one finds it settled, and other input is a duplicate there too.
    await pawl.start('chart', { runId: 'r3', input: {} as never });
    await go(pawl, 'k', 2, 'r3');
    expect(await ends(pawl, 1, 'r3')).toEqual(['DUPLICATE_OPERATION']);
    await go(pawl, 'k', 1, 'r3');
    expect(await ends(pawl, 2, 'r3')).toEqual(['DUPLICATE_OPERATION', 'one']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl, 'r1', 'r2', 'r3');
  });

  test.concurrent.each(['failed', 'withdrawn'] as const)('the second run goes on when the first %s', async (how) => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(how === 'failed' ? refused : absent)]);
    const { world, pawl } = await two(kind, script, { minDelayMs: 60_000, maxDelayMs: 60_000 });
    await go(pawl, 'k', 1, 'r2');
    await waitStatus(pawl, 'blocked', 'r2');
    open();
    if (how === 'withdrawn') {
      await waitStatus(pawl, 'not_executed', 'r1');
      await pawl.send('r1', { type: 'LEAVE' } as never);
    }
    expect(await ends(pawl, 1, 'r2')).toEqual(['ok']);
    expect(script.calls.length).toBe(2);
    await closeWell(world, pawl, 'r1', 'r2');
  });

  test.concurrent('a blocked run that leaves frees nothing, and the owner is not disturbed', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const { world, pawl } = await two(kind, script);
    await go(pawl, 'k', 1, 'r2');
    await waitStatus(pawl, 'blocked', 'r2');
    await pawl.send('r2', { type: 'LEAVE' } as never);
    await waitStatus(pawl, 'none', 'r2');
    await pawl.start('chart', { runId: 'r3', input: {} as never });
    await go(pawl, 'k', 1, 'r3');
    await waitStatus(pawl, 'blocked', 'r3');
    open();
    expect(await ends(pawl, 1, 'r3')).toEqual(['one']);
    expect(script.calls.length).toBe(1);
    await closeWell(world, pawl, 'r1', 'r2', 'r3');
  });

  test.concurrent('other tenants do not meet', async () => {
    const { opened, open } = gate();
    const script = new Script([() => opened.then(() => ({ id: 'one' }))]);
    const { world, pawl } = await two(kind, script);
    await pawl.start('chart', { runId: 'r9', tenant: 'other', input: {} as never });
    await go(pawl, 'k', 1, 'r9');
    expect(await ends(pawl, 1, 'r9')).toEqual(['ok']);
    expect(new Set(script.calls.map(({ operationId }) => operationId)).size).toBe(2);
    open();
    await closeWell(world, pawl, 'r1', 'r9');
  });
});
