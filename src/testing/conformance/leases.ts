/** Leases and due times: one owner per run, by the store's clock; nothing due is forgotten, nothing foreign is touched. */
import assert from 'node:assert/strict';
import type { Claim, Store } from '../../persistence/store.ts';
import {
  claimRun,
  commitAfter,
  commitOk,
  createRun,
  freshId,
  loadRun,
  sampleEvent,
  sampleRecord,
  sampleSummary,
  tryClaim,
  AGENTS,
  type Check,
} from './trial.ts';

async function claimDue(store: Store, limit = 10, agents: Record<string, number[]> = AGENTS): Promise<Claim[]> {
  return store.claim({ workerId: 'worker-1', leaseMs: 10_000, limit, agents });
}

const idsOf = (runs: { runId: string }[]): string[] => runs.map(({ runId }) => runId);

export function leaseSection(check: Check): void {
  check('due runs are claimed, the oldest due time first; later ones wait', async ({ store }) => {
    const nowMs = await store.nowMs();
    const second = await createRun(store, { lease: { releaseDueAtMs: 2 } });
    const first = await createRun(store, { lease: { releaseDueAtMs: 1 } });
    await createRun(store, { lease: { releaseDueAtMs: nowMs + 60_000 } });
    await createRun(store, { lease: { releaseDueAtMs: null } });

    const claims = await claimDue(store);
    assert.deepEqual(idsOf(claims), [first, second]);
    assert.deepEqual(
      claims.map(({ facts }) => facts.fence),
      [1, 1],
    );
    assert.equal(claims[0]?.facts.lease?.workerId, 'worker-1');
    assert.equal(claims[0]?.lease.untilMs, claims[0] && claims[0].nowMs + 10_000);
    assert.deepEqual(await claimDue(store), []);
  });

  check('a claim takes no more than its limit', async ({ store }) => {
    for (let index = 0; index < 5; index++) await createRun(store);
    assert.equal((await claimDue(store, 2)).length, 2);
    assert.equal((await claimDue(store, 10)).length, 3);
  });

  check('only runs of the named agents at the named versions are claimed; the others stay due', async ({ store }) => {
    const of = async (agent: string, agentVersion: number): Promise<string> =>
      createRun(store, { summary: sampleSummary({ agent, agentVersion }) });
    const [a1, a2, b1] = [await of('a', 1), await of('a', 2), await of('b', 1)];

    assert.deepEqual(idsOf(await claimDue(store, 10, { a: [2], toString: [1] })), [a2]);
    const foreign = { workerId: 'w', leaseMs: 1_000, limit: 1, agents: { a: [2] }, runIds: [a1] };
    assert.deepEqual(await store.claim(foreign), []);
    assert.deepEqual(idsOf(await claimDue(store, 10, { a: [1, 3], b: [1] })).toSorted(), [a1, b1].toSorted());
  });

  check('a leased run is claimed by nobody until its lease ends, then the fence rises', async ({ store, wait }) => {
    const runId = await createRun(store);
    const first = await claimRun(store, runId, 200, 'worker-a');
    assert.equal(await tryClaim(store, runId), undefined);
    await wait(250);
    const [second] = await claimDue(store);

    assert.equal(second?.lease.fence, first.lease.fence + 1);
    assert.deepEqual(await store.renew(first.lease, 1_000, 0), { kind: 'stale_fence' });
    assert.equal(await store.release(first.lease, { dueAtMs: null }), 'stale_fence');
    assert.equal((await loadRun(store, runId)).facts.lease?.workerId, 'worker-1');
  });

  check('a renewal and a commit each extend the lease', async ({ store, wait }) => {
    const runId = await createRun(store);
    let claim = await claimRun(store, runId, 150);
    const renewed = await store.renew(claim.lease, 5_000, 0);
    assert.ok(renewed.kind === 'ok');
    assert.equal(renewed.leaseUntilMs, renewed.nowMs + 5_000);
    claim = await commitOk(store, claim, { lease: { keepMs: 8_000 } });
    await wait(200);

    assert.deepEqual(await claimDue(store), []);
    assert.equal(await tryClaim(store, runId), undefined);
    assert.deepEqual(idsOf(await store.due(10)), [runId]);
    assert.equal((await store.due(10))[0]?.dueAtMs, claim.facts.lease?.untilMs);
  });

  check('a shorter lease is the one that counts', async ({ store, wait }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId, 60_000);
    await store.commit(commitAfter(claim, { lease: { keepMs: 100 } }));
    await wait(150);

    assert.deepEqual(idsOf(await claimDue(store)), [runId]);
  });

  check('many workers at once: each run has one owner', async ({ store }) => {
    const runIds = await Promise.all(Array.from({ length: 20 }, () => createRun(store)));
    const workers = Array.from({ length: 8 }, (_, index) =>
      store.claim({ workerId: `worker-${index}`, leaseMs: 10_000, limit: 5, agents: AGENTS }),
    );
    const claimed = idsOf((await Promise.all(workers)).flat());

    assert.deepEqual(claimed.toSorted(), runIds.toSorted());
  });

  check('R32 two processes at once: each run has one owner', async ({ store, second, supports }) => {
    if (!supports.secondProcess || !second) return;
    const runIds = await Promise.all(Array.from({ length: 40 }, () => createRun(store)));
    const stores = [store, await second()];
    const rounds = Array.from({ length: 20 }, (_, index) => {
      const request = { workerId: `worker-${index}`, leaseMs: 10_000, limit: 3, agents: AGENTS };
      return (stores[index % 2] ?? store).claim(request);
    });
    const claimed = idsOf((await Promise.all(rounds)).flat());

    assert.deepEqual(claimed.toSorted(), runIds.toSorted());
  });

  check(
    'R32 two processes at once: of two commits for one step, one is applied',
    async ({ store, second, supports }) => {
      if (!supports.secondProcess || !second) return;
      const other = await second();
      let claim = await claimRun(store, await createRun(store));
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.all([store.commit(commitAfter(claim)), other.commit(commitAfter(claim))]);
        assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['ok', 'stale_sequence']);
        claim = { ...claim, ...(await loadRun(other, claim.runId)) };
      }
      assert.deepEqual(await other.audit(claim.runId), []);
    },
  );

  check('a release names the due time, but a run with more in its inbox is due now', async ({ store }) => {
    const [idle, busy, later] = [await createRun(store), await createRun(store), await createRun(store)];
    const claims = await claimDue(store);
    await store.accept(busy, sampleEvent());
    const nowMs = await store.nowMs();
    for (const claim of claims) {
      const releaseDueAtMs = claim.runId === later ? nowMs + 60_000 : null;
      await store.commit(commitAfter(claim, { lease: { releaseDueAtMs } }));
    }

    assert.deepEqual(idsOf(await store.due(10)), [busy, later]);
    assert.deepEqual(idsOf(await claimDue(store)), [busy]);
    const run = await loadRun(store, idle);
    assert.equal(run.facts.lease, null);
  });

  check('an event makes a free run due at once, and leaves the lease of a leased one alone', async ({ store }) => {
    const free = await createRun(store, { lease: { releaseDueAtMs: null } });
    const held = await createRun(store);
    const claim = await claimRun(store, held);
    await store.accept(free, sampleEvent());
    await store.accept(held, sampleEvent());

    assert.deepEqual(idsOf(await claimDue(store)), [free]);
    assert.equal((await loadRun(store, held)).facts.lease?.untilMs, claim.lease.untilMs);
  });

  check('a record that cannot be read is claimed as such, put aside, and harms no other run', async ({ store }) => {
    const bytes = '{"format":1,"machine":';
    const bad = await createRun(store, { record: { full: bytes } });
    const newer = await createRun(store, { record: { full: JSON.stringify({ ...sampleRecord('x'), format: 2 }) } });
    const good = await createRun(store);
    const claims = await claimDue(store);
    const unreadable = claims.filter((claim) => claim.record === null);

    assert.deepEqual(idsOf(claims).toSorted(), [bad, newer, good].toSorted());
    assert.deepEqual(idsOf(unreadable), [bad, newer]);
    for (const claim of unreadable) {
      assert.ok(claim.unreadable !== null && claim.unreadable.length > 0);
      assert.equal(await store.markUnreadable(claim.lease, claim.unreadable), 'ok');
    }
    const run = await loadRun(store, bad);
    assert.equal(run.summary.status, 'needs_human');
    assert.deepEqual(run.summary.waitingFor, ['record_unreadable']);
    assert.equal(run.facts.lease, null);
    assert.equal(run.recordDigest, unreadable[0]?.recordDigest);
    await store.accept(bad, sampleEvent());
    await store.receive(bad, { operationId: 'op', attempt: 1, outcome: 'succeeded', via: 'execute', atMs: 1 });
    assert.deepEqual(await claimDue(store), []);
    assert.equal(await tryClaim(store, bad), undefined);
    assert.deepEqual(idsOf((await store.list({ blocked: true })).runs), [newer, bad]);
    assert.deepEqual(idsOf(await store.due(10)), [good]);
    const stale = unreadable[0];
    assert.equal(stale && (await store.markUnreadable(stale.lease, 'again')), 'stale_fence');
  });

  check('whoever watches is told of changed runs, until the signal', async ({ store }) => {
    const stop = new AbortController();
    const seen: string[] = [];
    const watching = (async (): Promise<void> => {
      for await (const runId of store.watch(stop.signal)) {
        seen.push(runId);
        if (seen.length === 2) stop.abort();
      }
    })();
    const runId = await createRun(store, { runId: freshId('run') });
    const other = await createRun(store);
    await watching;

    assert.deepEqual(seen, [runId, other]);
  });

  check('whoever watches is told of what another process made due', async ({ store, second, supports }) => {
    if (!supports.secondProcess || !second) return;
    const runId = await createRun(store, { lease: { releaseDueAtMs: null } });
    const stop = new AbortController();
    const hints = store.watch(stop.signal)[Symbol.asyncIterator]();
    const hint = hints.next();
    await (await second()).accept(runId, sampleEvent());

    assert.equal((await hint).value, runId);
    stop.abort();
    assert.equal((await hints.next()).done, true);
  });
}
