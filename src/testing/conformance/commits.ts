/** Commits: one writer, one order, all or nothing. */
import assert from 'node:assert/strict';
import { isPawlError } from '../../errors.ts';
import { digestAfter, encodeRecord, type WrittenRecord } from '../../persistence/record-text.ts';
import type { Commit, RunRecord } from '../../records.ts';
import {
  claimRun,
  commitAfter,
  commitOk,
  createRun,
  ledgerOf,
  loadRun,
  sampleEvent,
  sampleReceipt,
  sampleRecord,
  INPUT_DIGEST,
  type Check,
} from './trial.ts';

export function commitSection(check: Check): void {
  check('a commit advances sequence, position, record and ledger together', async ({ store }) => {
    const runId = await createRun(store);
    await store.accept(runId, sampleEvent());
    const claim = await claimRun(store, runId);
    const commit = commitAfter(claim, { position: 1 });
    const answer = await store.commit(commit);
    const run = await loadRun(store, runId);

    assert.ok(answer.kind === 'ok');
    assert.equal(answer.leaseUntilMs, answer.nowMs + 10_000);
    assert.deepEqual([run.facts.sequence, run.facts.position, run.facts.commitId], [2, 1, commit.commitId]);
    assert.deepEqual(run.record, sampleRecord(runId, { step: 2 }));
    assert.deepEqual(
      (await ledgerOf(store, runId)).map(({ kind }) => kind),
      ['started', 'accepted', 'transitioned'],
    );
  });

  check('R03 a commit sent again after its answer was lost is repeated, once applied', async ({ store }) => {
    const runId = await createRun(store);
    const commit = commitAfter(await claimRun(store, runId));
    await store.commit(commit);
    await store.accept(runId, sampleEvent('event-meanwhile'));
    const again = await store.commit(commit);

    assert.ok(again.kind === 'repeated');
    assert.deepEqual(
      again.inbox.map(({ eventId }) => eventId),
      ['event-meanwhile'],
    );
    assert.equal((await loadRun(store, runId)).facts.sequence, 2);
    assert.equal((await ledgerOf(store, runId)).filter(({ kind }) => kind === 'transitioned').length, 1);
  });

  check('a commit that gave its lease back is still known when it comes again', async ({ store }) => {
    const runId = await createRun(store);
    const commit = commitAfter(await claimRun(store, runId), { lease: { releaseDueAtMs: null } });
    await store.commit(commit);
    const again = await store.commit(commit);

    assert.equal(again.kind, 'repeated');
    assert.ok(again.kind === 'repeated' && again.leaseUntilMs === null);
  });

  check('R30 two writers: a commit under an old fence stores nothing at all', async ({ store, wait }) => {
    const runId = await createRun(store);
    const old = await claimRun(store, runId, 20, 'worker-a');
    await wait(30);
    const current = await claimRun(store, runId, 10_000, 'worker-b');
    const answer = await store.commit(
      commitAfter(old, {
        receipts: [sampleReceipt('op-1')],
        keys: [{ keyDigest: 'k1', operationId: 'op-1', generation: 1, inputDigest: INPUT_DIGEST }],
        verdicts: [{ eventId: 'event-x', verdict: { verdict: 'applied', sequence: 2, state: null } }],
      }),
    );

    assert.equal(answer.kind, 'stale_fence');
    assert.deepEqual({ ...(await loadRun(store, runId)), nowMs: 0 }, { ...stored(current), nowMs: 0 });
    assert.equal(await store.receipt(runId, 'op-1'), null);
    assert.equal(await store.verdict(runId, 'event-x'), null);
    assert.equal((await ledgerOf(store, runId)).length, 1);
    await commitOk(store, current);
  });

  check('a commit after the lease was given back is stale, though nobody else has claimed', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    assert.equal(await store.release(claim.lease, { dueAtMs: null }), 'ok');

    assert.equal((await store.commit(commitAfter(claim))).kind, 'stale_fence');
    assert.equal((await loadRun(store, runId)).facts.sequence, 1);
  });

  check('a worker whose lease ended may still commit while nobody has taken over', async ({ store, wait }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId, 10);
    await wait(20);

    assert.equal((await store.commit(commitAfter(claim))).kind, 'ok');
  });

  check('a late copy of an earlier commit is refused, also without a macrostep', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    const idle = { sequence: claim.facts.sequence, entries: [] };
    const first = commitAfter(claim, idle);
    await store.commit(first);
    const next = await commitOk(store, { ...claim, ...(await loadRun(store, runId)) }, idle);

    assert.equal((await store.commit(first)).kind, 'stale_sequence');
    assert.equal((await loadRun(store, runId)).facts.commitId, next.facts.commitId);
  });

  check('a commit that expects another sequence, position or base is refused', async ({ store }) => {
    const runId = await createRun(store);
    await store.accept(runId, sampleEvent());
    const claim = await claimRun(store, runId);
    const cases: Partial<Commit>[] = [
      { expectedSequence: 0, sequence: 1, entries: [] },
      { expectedSequence: 2, sequence: 3, entries: [] },
      { expectedPosition: 1, position: 1 },
      { record: { patch: '{}', baseDigest: digestAfter({ full: 'another text' }) } },
    ];
    for (const changes of cases) {
      assert.equal((await store.commit(commitAfter(claim, changes))).kind, 'stale_sequence', JSON.stringify(changes));
    }
    assert.deepEqual({ ...(await loadRun(store, runId)), nowMs: 0 }, { ...stored(claim), nowMs: 0 });
  });

  check('of two commits for one step, sent at once, one is applied', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    const answers = await Promise.all([store.commit(commitAfter(claim)), store.commit(commitAfter(claim))]);

    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['ok', 'stale_sequence']);
    assert.equal((await ledgerOf(store, runId)).length, 2);
  });

  check('a commit that cannot be is refused and spoils none of those beside it', async ({ store }) => {
    const runs = await Promise.all([createRun(store), createRun(store), createRun(store)]);
    const claims = await Promise.all(runs.map((runId) => claimRun(store, runId)));
    const commits = claims.map((claim, index) => commitAfter(claim, index === 1 ? { position: 7 } : {}));
    const answers = await Promise.allSettled(commits.map((commit) => store.commit(commit)));

    assert.deepEqual(
      answers.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.ok(answers[1]?.status === 'rejected' && isPawlError(answers[1].reason, 'INVALID_ARGUMENT'));
    const sequences = await Promise.all(runs.map(async (runId) => (await loadRun(store, runId)).facts.sequence));
    assert.deepEqual(sequences, [2, 1, 2]);
    for (const runId of runs) assert.deepEqual(await store.audit(runId), []);
  });

  check('R38 patches and full records give back exactly what was committed, every time', async ({ store }) => {
    const context = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`field${index}`, index]));
    let record: RunRecord = sampleRecord('run-r38', context);
    let written: WrittenRecord = encodeRecord(null, record, true);
    const runId = await createRun(store, { runId: 'run-r38', record: { full: JSON.stringify(record) } });
    let claim = await claimRun(store, runId);
    let patches = 0;
    for (let step = 0; step < 120; step++) {
      const changed = { ...(record.machine.context as object), [`field${step % 50}`]: `changed ${step}` };
      record = { ...record, machine: { ...record.machine, context: changed }, updatedAtMs: step };
      const encoded = encodeRecord(written, record, step === 119);
      if ('patch' in encoded.text) patches++;
      written = encoded;
      claim = await commitOk(store, claim, { record: encoded.text });
      assert.deepEqual(claim.record, record);
      assert.equal(claim.recordDigest, encoded.digest);
    }
    assert.ok(patches > 100, `only ${patches} of 120 commits were patches`);
    assert.deepEqual(await store.audit(runId), []);
  });

  check('durable says whether the asked level was reached', async ({ store, supports }) => {
    const levels = supports.durability ?? ['process', 'disk'];
    let claim = await claimRun(store, await createRun(store));
    for (const durability of ['process', 'disk', { replicas: 1 }] as const) {
      const answer = await store.commit(commitAfter(claim, { durability }));
      assert.ok(answer.kind === 'ok');
      assert.equal(
        answer.durable,
        typeof durability === 'string' && levels.includes(durability),
        JSON.stringify(durability),
      );
      claim = { ...claim, ...(await loadRun(store, claim.runId)) };
    }
  });
}

/** A claim as `load` shows it. */
function stored({ lease: _lease, inbox: _inbox, ...run }: Awaited<ReturnType<typeof claimRun>>): object {
  return run;
}
