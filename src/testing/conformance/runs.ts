/** Runs: created once, loaded as stored, listed, erased. */
import assert from 'node:assert/strict';
import { isPawlError } from '../../errors.ts';
import {
  claimRun,
  commitAfter,
  commitOk,
  createRun,
  firstCommit,
  freshId,
  ledgerOf,
  loadRun,
  sampleEvent,
  sampleRecord,
  sampleSummary,
  type Check,
} from './trial.ts';

export function runSection(check: Check): void {
  check('a created run is loaded as it was stored, free and unconsumed', async ({ store }) => {
    const runId = freshId('run');
    const commit = firstCommit(runId);
    const created = await store.create(commit);
    const loaded = await loadRun(store, runId);

    assert.equal(created.kind, 'created');
    assert.deepEqual({ ...created.run, nowMs: 0 }, { ...loaded, nowMs: 0 });
    assert.deepEqual(loaded.record, sampleRecord(runId));
    assert.deepEqual(loaded.summary, commit.summary);
    assert.deepEqual(loaded.facts, {
      sequence: 1,
      fence: 0,
      lease: null,
      commitId: commit.commitId,
      position: 0,
      closed: false,
      receipts: {},
    });
    assert.equal(loaded.waiting, 0);
    assert.equal(loaded.unreadable, null);
  });

  check('R34 a second create of the same id changes nothing and returns the first', async ({ store }) => {
    const runId = await createRun(store);
    const before = await loadRun(store, runId);
    const record = { full: JSON.stringify(sampleRecord(runId, { other: true })) };
    const again = await store.create(firstCommit(runId, { record, commitId: 'another' }));

    assert.equal(again.kind, 'exists');
    assert.deepEqual({ ...again.run, nowMs: 0 }, { ...before, nowMs: 0 });
    assert.equal((await ledgerOf(store, runId)).length, 1);
  });

  check('two creates at once make one run', async ({ store }) => {
    const runId = freshId('run');
    const answers = await Promise.all([store.create(firstCommit(runId)), store.create(firstCommit(runId))]);

    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['created', 'exists']);
    assert.equal(answers[0].run.facts.commitId, answers[1].run.facts.commitId);
  });

  check('what is not there is said to be missing', async ({ store }) => {
    const runId = freshId('run');
    assert.equal(await store.load(runId), null);
    assert.equal(await store.verdict(runId, 'e'), null);
    assert.equal(await store.receipt(runId, 'op'), null);
    assert.equal((await store.accept(runId, sampleEvent())).kind, 'missing');
    assert.equal((await store.commit(firstCommit(runId, { fence: 1 }))).kind, 'missing');
    assert.equal(await store.erase(runId), false);
    assert.deepEqual(await ledgerOf(store, runId), []);
    assert.deepEqual(await store.audit(runId), []);
  });

  check('ids that are not ids are refused before anything is written', async ({ store }) => {
    const runId = await createRun(store);
    for (const bad of ['', 'a b', 'x'.repeat(201), 'a\0b', "a'b"]) {
      await assert.rejects(store.create(firstCommit(bad)), (error) => isPawlError(error, 'INVALID_ID'));
      await assert.rejects(store.load(bad), (error) => isPawlError(error, 'INVALID_ID'));
      await assert.rejects(store.accept(runId, sampleEvent(bad)), (error) => isPawlError(error, 'INVALID_ID'));
    }
    assert.equal((await ledgerOf(store, runId)).length, 1);
  });

  check('list gives newest first, in pages, by every filter', async ({ store }) => {
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) {
      const summary = sampleSummary({
        status: index === 3 ? 'needs_human' : 'waiting',
        states: ['a', index % 2 === 0 ? 'a.even' : 'a.odd'],
        tenant: index === 0 ? 'other' : 'default',
        labels: { index: String(index), kind: "it's" },
        waitingFor: index === 4 ? ['blocked_by op_1'] : [],
      });
      ids.push(await createRun(store, { summary }));
    }
    const idsOf = async (filter: Parameters<typeof store.list>[0]): Promise<string[]> =>
      (await store.list(filter)).runs.map(({ runId }) => runId);
    const at = (...places: number[]): (string | undefined)[] => places.map((place) => ids[place]);

    assert.deepEqual(await idsOf({}), at(4, 3, 2, 1, 0));
    assert.deepEqual(await idsOf({ status: 'waiting' }), at(4, 2, 1, 0));
    assert.deepEqual(await idsOf({ state: 'a.even' }), at(4, 2, 0));
    assert.deepEqual(await idsOf({ tenant: 'other' }), at(0));
    assert.deepEqual(await idsOf({ labels: { index: '2', kind: "it's" } }), at(2));
    assert.deepEqual(await idsOf({ blocked: true }), at(4, 3));
    assert.deepEqual(await idsOf({ agent: 'nobody' }), []);
    const first = await store.list({ limit: 2 });
    const second = await store.list({ limit: 3, ...(first.cursor === null ? {} : { cursor: first.cursor }) });
    assert.deepEqual(
      [...first.runs, ...second.runs].map(({ runId }) => runId),
      at(4, 3, 2, 1, 0),
    );
    assert.equal(second.cursor, null);
    await assert.rejects(store.list({ limit: 0 }), (error) => isPawlError(error, 'INVALID_ARGUMENT'));
  });

  check('an erased run leaves nothing, and its id can be used again', async ({ store }) => {
    const runId = await createRun(store);
    const other = await createRun(store);
    await store.accept(runId, sampleEvent('event-to-erase'));
    await store.receive(runId, { operationId: 'op', attempt: 1, outcome: 'not_executed', via: 'execute', atMs: 1 });

    assert.equal(await store.erase(runId), true);
    assert.equal(await store.load(runId), null);
    assert.deepEqual(await ledgerOf(store, runId), []);
    assert.equal(await store.verdict(runId, 'event-to-erase'), null);
    await createRun(store, { runId });
    assert.equal((await store.accept(runId, sampleEvent('event-to-erase'))).kind, 'accepted');
    assert.deepEqual(await store.audit(runId), []);
    assert.equal((await ledgerOf(store, other)).length, 1);
  });

  check('everything is there after the store was closed and opened again', async ({ store, reopen, supports }) => {
    if (!supports.reopen || !reopen) return;
    const runId = await createRun(store);
    const claim = await commitOk(store, await claimRun(store, runId), {
      entries: [{ sequence: 2, kind: 'emitted', atMs: 1 }],
    });
    const before = await loadRun(store, runId);
    const opened = await reopen();

    assert.deepEqual({ ...(await loadRun(opened, runId)), nowMs: 0 }, { ...before, nowMs: 0 });
    assert.equal((await opened.commit(commitAfter(claim))).kind, 'ok');
    assert.deepEqual(await opened.audit(runId), []);
  });

  check('a structure is registered by the first writer', async ({ store }) => {
    assert.equal(await store.registerStructure('agent', 1, 'first'), 'first');
    assert.equal(await store.registerStructure('agent', 1, 'second'), 'first');
    assert.equal(await store.registerStructure('agent', 2, 'second'), 'second');
  });

  check('a closed store says so', async ({ store }) => {
    await store.close();
    await assert.rejects(store.load('run'), (error) => isPawlError(error, 'STORE_CLOSED'));
    await assert.rejects(store.create(firstCommit('run')), (error) => isPawlError(error, 'STORE_CLOSED'));
  });
}
