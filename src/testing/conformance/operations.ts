/** Operations: keys, receipts, attempts and reopening, as facts that a commit meets. */
import assert from 'node:assert/strict';
import type { ClosedOperation, OperationKey } from '../../records.ts';
import {
  claimRun,
  collect,
  commitAfter,
  commitOk,
  createRun,
  loadRun,
  sampleReceipt,
  tryClaim,
  INPUT_DIGEST,
  type Check,
} from './trial.ts';

const KEY = 'f'.repeat(64);

function keyOf(operationId: string, generation = 1): OperationKey {
  return { keyDigest: KEY, operationId, generation, inputDigest: INPUT_DIGEST };
}

function closed(operationId: string, status: ClosedOperation['status'], attempts = 1): ClosedOperation {
  return { operationId, status, attempts, inputDigest: INPUT_DIGEST };
}

export function operationSection(check: Check): void {
  check('a key is taken once; another operation of the same generation meets the first', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')], attempts: [{ operationId: 'op-1', attempt: 1 }] });
    const commit = commitAfter(claim, { keys: [keyOf('op-2')] });
    const answer = await store.commit(commit);

    assert.ok(answer.kind === 'conflict');
    assert.equal(answer.on, 'key');
    assert.equal(answer.operationId, 'op-2');
    assert.deepEqual(answer.stored, { operationId: 'op-1', key: keyOf('op-1'), closed: null, receipt: null });
    assert.deepEqual((await loadRun(store, claim.runId)).facts.sequence, claim.facts.sequence);
    const replanned = await store.commit({ ...commit, commitId: `${commit.commitId}-2`, keys: [] });
    assert.equal(replanned.kind, 'ok', 'after a conflict the lease is kept and the next commit has the same after');
  });

  check('a key goes to a later generation', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')] });
    claim = await commitOk(store, claim, {
      receipts: [sampleReceipt('op-1', { outcome: 'failed' })],
      closes: [closed('op-1', 'failed')],
    });
    claim = await commitOk(store, claim, { keys: [keyOf('op-2', 2)] });
    const answer = await store.commit(commitAfter(claim, { keys: [keyOf('op-1')] }));

    assert.ok(answer.kind === 'conflict');
    assert.deepEqual(answer.stored.key, keyOf('op-2', 2));
  });

  for (const status of ['not_executed', 'withdrawn'] as const) {
    check(`an operation closed as ${status} is reopened under the same id`, async ({ store }) => {
      let claim = await claimRun(store, await createRun(store));
      const absence = sampleReceipt('op-1', { outcome: 'not_executed' });
      claim = await commitOk(store, claim, { keys: [keyOf('op-1')] });
      claim = await commitOk(store, claim, { receipts: [absence], closes: [closed('op-1', status)] });
      assert.deepEqual(claim.facts.receipts, {}, 'a closed operation brings no receipts');
      claim = await commitOk(store, claim, { keys: [keyOf('op-1')], attempts: [{ operationId: 'op-1', attempt: 2 }] });

      assert.deepEqual(claim.facts.receipts, { 'op-1#1': absence }, 'an open one brings them');
      const again = await store.commit(commitAfter(claim, { keys: [keyOf('op-1')] }));
      assert.ok(again.kind === 'conflict', 'an open operation is not opened again');
      assert.equal(again.stored.closed, null);
    });
  }

  check('an operation is reopened only by one who knows how many attempts it has had', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')] });
    claim = await commitOk(store, claim, { closes: [closed('op-1', 'not_executed', 2)] });
    const outdated = await store.commit(commitAfter(claim, { keys: [{ ...keyOf('op-1'), attempts: 1 }] }));

    assert.ok(outdated.kind === 'conflict' && outdated.on === 'key');
    assert.equal(outdated.stored.closed?.attempts, 2);
    claim = await commitOk(store, claim, { keys: [{ ...keyOf('op-1'), attempts: 2 }] });
    const again = await store.commit(commitAfter(claim, { keys: [keyOf('op-1')] }));
    assert.ok(again.kind === 'conflict');
    assert.deepEqual(again.stored.key, keyOf('op-1'), 'what the sender knew is not part of the key');
  });

  for (const status of ['succeeded', 'failed', 'compensated'] as const) {
    check(`an operation closed as ${status} is not reopened`, async ({ store }) => {
      let claim = await claimRun(store, await createRun(store));
      claim = await commitOk(store, claim, { keys: [keyOf('op-1')] });
      claim = await commitOk(store, claim, { closes: [closed('op-1', status, 3)] });
      const answer = await store.commit(commitAfter(claim, { keys: [keyOf('op-1')] }));

      assert.ok(answer.kind === 'conflict' && answer.on === 'key');
      assert.deepEqual(answer.stored.closed, closed('op-1', status, 3));
    });
  }

  check('a success stored for a withdrawn operation outranks its status: the worker takes it', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')], attempts: [{ operationId: 'op-1', attempt: 1 }] });
    claim = await commitOk(store, claim, { closes: [closed('op-1', 'withdrawn')] });
    assert.equal(await store.receive(claim.runId, sampleReceipt('op-1')), 'stored');
    const answer = await store.commit(commitAfter(claim, { keys: [keyOf('op-1')] }));

    assert.ok(answer.kind === 'conflict' && answer.on === 'key');
    assert.deepEqual(answer.stored.receipt, sampleReceipt('op-1'));
    assert.equal(answer.inbox.length, 1);
  });

  check('a receipt of the same outcome is taken, and the first output stands', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')] });
    await store.receive(claim.runId, sampleReceipt('op-1', { output: 'first' }));
    claim = await commitOk(store, claim, { receipts: [sampleReceipt('op-1', { output: 'second', attempt: 2 })] });

    assert.equal(claim.facts.receipts['op-1']?.output, 'first');
    assert.equal((await store.receipt(claim.runId, 'op-1'))?.output, 'first');
    assert.deepEqual(await store.audit(claim.runId), []);
  });

  check('a receipt of another outcome conflicts, and nothing of its commit is stored', async ({ store }) => {
    const claim = await claimRun(store, await createRun(store));
    await store.receive(claim.runId, sampleReceipt('op-1'));
    const answer = await store.commit(
      commitAfter(claim, { receipts: [sampleReceipt('op-2'), sampleReceipt('op-1', { outcome: 'failed' })] }),
    );

    assert.ok(answer.kind === 'conflict' && answer.on === 'receipt');
    assert.deepEqual(answer.stored.receipt, sampleReceipt('op-1'));
    assert.equal(await store.receipt(claim.runId, 'op-2'), null);
  });

  check('an attempt conflicts with a stored terminal receipt, not with an absence', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    await store.receive(claim.runId, sampleReceipt('op-1', { outcome: 'not_executed' }));
    claim = await commitOk(store, claim, { attempts: [{ operationId: 'op-1', attempt: 2 }] });
    await store.receive(claim.runId, sampleReceipt('op-1', { attempt: 2 }));
    const answer = await store.commit(commitAfter(claim, { attempts: [{ operationId: 'op-1', attempt: 3 }] }));

    assert.ok(answer.kind === 'conflict' && answer.on === 'attempt');
    assert.equal(answer.stored.receipt?.attempt, 2);
  });

  check('keys are checked before receipts, receipts before attempts', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')], receipts: [sampleReceipt('op-1')] });
    const receipts = [sampleReceipt('op-1', { outcome: 'failed' })];
    const attempts = [{ operationId: 'op-1', attempt: 2 }];
    const on = async (changes: object): Promise<string> => {
      const answer = await store.commit(commitAfter(claim, changes));
      return answer.kind === 'conflict' ? answer.on : answer.kind;
    };

    assert.equal(await on({ keys: [keyOf('op-2')], receipts, attempts }), 'key');
    assert.equal(await on({ receipts, attempts }), 'receipt');
    assert.equal(await on({ attempts }), 'attempt');
  });

  check('not_executed is a fact of its attempt; unknown is never a fact', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    const absences = [1, 2].map((attempt) => sampleReceipt('op-1', { outcome: 'not_executed', attempt }));
    claim = await commitOk(store, claim, { keys: [keyOf('op-1')], receipts: absences });
    claim = await commitOk(store, claim, { receipts: [sampleReceipt('op-1', { outcome: 'unknown', attempt: 3 })] });
    assert.equal(await store.receive(claim.runId, sampleReceipt('op-1', { outcome: 'not_executed' })), 'same');
    assert.equal(await store.receive(claim.runId, sampleReceipt('op-1', { attempt: 3 })), 'stored');

    const { facts } = await loadRun(store, claim.runId);
    assert.deepEqual(Object.keys(facts.receipts).toSorted(), ['op-1', 'op-1#1', 'op-1#2']);
    assert.deepEqual(await collect(store.receipts(claim.runId)), [sampleReceipt('op-1', { attempt: 3 })]);
  });

  check('operations and keys whose ids begin alike are told apart', async ({ store }) => {
    const ids = ['1', '2', '3'].map((digit) => `op_${'0'.repeat(16)}${digit.repeat(16)}`);
    const keys = ids.map((operationId, place) => ({ ...keyOf(operationId), keyDigest: `${'0'.repeat(63)}${place}` }));
    let claim = await claimRun(store, await createRun(store));
    const other = await claimRun(store, await createRun(store));
    for (const [place, operationId] of ids.entries()) {
      claim = await commitOk(store, claim, {
        keys: keys.slice(place, place + 1),
        receipts: [sampleReceipt(operationId, { output: { place } })],
      });
    }
    for (const [place, operationId] of ids.entries()) {
      assert.deepEqual((await store.receipt(claim.runId, operationId))?.output, { place });
      assert.equal(await store.receipt(other.runId, operationId), null);
      const answer = await store.commit(commitAfter(claim, { keys: keys.slice(place, place + 1) }));
      assert.ok(answer.kind === 'conflict');
      assert.equal(answer.stored.operationId, operationId);
    }
  });

  check('a claim brings the receipts of open operations only, whatever the history', async ({ store }) => {
    let claim = await claimRun(store, await createRun(store));
    for (let step = 0; step < 20; step++) {
      const key = { ...keyOf(`op-${step}`), keyDigest: `key-${step}` };
      const previous = step === 0 ? [] : [`op-${step - 1}`];
      claim = await commitOk(store, claim, {
        keys: [key],
        receipts: previous.map((operationId) => sampleReceipt(operationId, { output: { step } })),
        closes: previous.map((operationId) => closed(operationId, 'succeeded')),
        attempts: [{ operationId: key.operationId, attempt: 1 }],
      });
    }
    await store.receive(claim.runId, sampleReceipt('op-19'));
    await store.release(claim.lease, { dueAtMs: null });
    const next = await tryClaim(store, claim.runId);

    assert.deepEqual(Object.keys(next?.facts.receipts ?? {}), ['op-19']);
    assert.equal((await collect(store.receipts(claim.runId))).length, 20);
    assert.deepEqual((await store.receipt(claim.runId, 'op-4'))?.output, { step: 5 });
    assert.deepEqual(await store.audit(claim.runId), []);
  });
}
