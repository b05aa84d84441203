/** The inbox: each event once, in order, answered for ever. */
import assert from 'node:assert/strict';
import type { StoredVerdict } from '../../records.ts';
import {
  claimRun,
  commitAfter,
  commitOk,
  createRun,
  ledgerOf,
  loadRun,
  sampleEvent,
  sampleReceipt,
  tryClaim,
  AGENTS,
  type Check,
} from './trial.ts';

export function inboxSection(check: Check): void {
  check('an event is accepted once; a repeat is answered with the verdict once there is one', async ({ store }) => {
    const runId = await createRun(store);
    const event = sampleEvent('event-once');
    assert.deepEqual(await store.accept(runId, event), { kind: 'accepted', position: 1 });
    assert.deepEqual(await store.accept(runId, event), { kind: 'duplicate', verdict: null });

    const verdict: StoredVerdict = { verdict: 'applied', sequence: 2, state: { a: 'b' } };
    const claim = await claimRun(store, runId);
    await commitOk(store, claim, { position: 1, verdicts: [{ eventId: 'event-once', verdict }] });

    assert.deepEqual(await store.accept(runId, event), { kind: 'duplicate', verdict });
    assert.deepEqual(await store.verdict(runId, 'event-once'), verdict);
    const accepted = (await ledgerOf(store, runId)).filter(({ kind }) => kind === 'accepted');
    assert.equal(accepted.length, 1);
    const fields = ['eventId', 'type', 'by', 'position'].map((name) => accepted[0]?.[name]);
    assert.deepEqual(fields, ['event-once', 'GO', 'ann', 1]);
  });

  check('the same event sent many times at once is stored once', async ({ store }) => {
    const runId = await createRun(store);
    const answers = await Promise.all(Array.from({ length: 8 }, () => store.accept(runId, sampleEvent('event-same'))));

    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['accepted', ...Array<string>(7).fill('duplicate')]);
    assert.equal((await loadRun(store, runId)).waiting, 1);
  });

  check('items come back in order with their positions, until they are consumed', async ({ store }) => {
    const runId = await createRun(store);
    for (let index = 1; index <= 3; index++) await store.accept(runId, sampleEvent(`event-${index}`, { index }));
    const claim = await claimRun(store, runId);
    const event = claim.inbox[1];

    assert.deepEqual(
      claim.inbox.map(({ position }) => position),
      [1, 2, 3],
    );
    assert.deepEqual(event && { ...event, atMs: 0 }, { ...sampleEvent('event-2', { index: 2 }), position: 2, atMs: 0 });
    const answer = await store.commit(commitAfter(claim, { position: 2 }));
    assert.ok(answer.kind === 'ok');
    assert.deepEqual(
      answer.inbox.map(({ position }) => position),
      [3],
    );
    assert.equal((await loadRun(store, runId)).waiting, 1);
  });

  check('a claim brings the first hundred items, the next commit the rest', async ({ store }) => {
    const runId = await createRun(store);
    await Promise.all(Array.from({ length: 120 }, () => store.accept(runId, sampleEvent())));
    const claim = await claimRun(store, runId);
    const answer = await store.commit(commitAfter(claim, { position: 100 }));

    assert.equal(claim.waiting, 120);
    assert.equal(claim.inbox.length, 100);
    assert.ok(answer.kind === 'ok');
    assert.equal(answer.inbox[0]?.position, 101);
    assert.equal(answer.inbox.length, 20);
  });

  check('a renewal brings only what is behind the given position', async ({ store }) => {
    const runId = await createRun(store);
    await store.accept(runId, sampleEvent());
    const claim = await claimRun(store, runId);
    await store.accept(runId, sampleEvent('event-new'));
    const renewed = await store.renew(claim.lease, 10_000, 1);

    assert.ok(renewed.kind === 'ok');
    assert.deepEqual(
      renewed.inbox.map(({ eventId }) => eventId),
      ['event-new'],
    );
  });

  check('an event refused at the door has a verdict and one entry, and never enters the inbox', async ({ store }) => {
    const runId = await createRun(store);
    const verdict: StoredVerdict = { verdict: 'refused', sequence: 1, state: 'working', reason: 'unknown_event' };
    const refused = await store.accept(runId, sampleEvent('event-bad'), { reason: 'unknown_event', state: 'working' });

    assert.deepEqual(refused, { kind: 'final', verdict });
    assert.deepEqual(await store.accept(runId, sampleEvent('event-bad')), { kind: 'duplicate', verdict });
    assert.equal((await loadRun(store, runId)).waiting, 0);
    const entries = (await ledgerOf(store, runId)).filter(({ kind }) => kind === 'refused');
    assert.equal(entries.length, 1);
    assert.equal(entries[0]?.['eventId'], 'event-bad');
    assert.equal(entries[0]?.['reason'], 'unknown_event');
  });

  check('a run closes only when its inbox is consumed; a closed one refuses with run_final', async ({ store }) => {
    const runId = await createRun(store);
    let claim = await claimRun(store, runId);
    await store.accept(runId, sampleEvent());
    const open = await store.commit(commitAfter(claim, { close: true }));
    assert.ok(open.kind === 'ok' && !open.closed);

    claim = { ...claim, ...(await loadRun(store, runId)) };
    const closed = await store.commit(commitAfter(claim, { close: true, position: 1, lease: { releaseDueAtMs: 0 } }));
    assert.ok(closed.kind === 'ok' && closed.closed);
    assert.equal((await loadRun(store, runId)).facts.closed, true);
    const late = await store.accept(runId, sampleEvent('event-late'));
    assert.ok(late.kind === 'final');
    assert.equal(late.verdict.reason, 'run_final');
    assert.equal((await ledgerOf(store, runId)).at(-1)?.kind, 'refused');
    assert.equal(await tryClaim(store, runId), undefined);
    assert.deepEqual(await store.claim({ workerId: 'w', leaseMs: 1, limit: 10, agents: AGENTS }), []);
    assert.deepEqual(await store.due(10), []);
  });

  check(
    'a receipt that arrives beside a commit is a fact and an inbox item; its repeat is neither',
    async ({ store }) => {
      const runId = await createRun(store);
      const receipt = sampleReceipt('op-1');
      assert.equal(await store.receive(runId, receipt), 'stored');
      assert.equal(await store.receive(runId, { ...receipt, output: 'other' }), 'same');
      assert.equal(await store.receive(runId, { ...receipt, outcome: 'failed' }), 'conflict');
      assert.equal(await store.receive(runId, { ...receipt, outcome: 'unknown' }), 'same');

      assert.deepEqual(await store.receipt(runId, 'op-1'), receipt);
      const claim = await claimRun(store, runId);
      assert.equal(claim.inbox.length, 1);
      assert.equal(claim.inbox[0]?.eventId, 'receipt:op-1:1:succeeded');
      assert.deepEqual(claim.inbox[0]?.body, { kind: 'receipt', receipt });
      assert.deepEqual(claim.facts.receipts, { 'op-1': receipt });
      const received = (await ledgerOf(store, runId)).filter(({ kind }) => kind === 'received');
      assert.equal(received.length, 1);
      assert.deepEqual(received[0]?.['receipt'], receipt);
    },
  );

  check('a receipt of a closed run is a fact without an inbox item', async ({ store }) => {
    const runId = await createRun(store, { close: true });
    assert.equal(await store.receive(runId, sampleReceipt('op-late')), 'stored');

    assert.equal((await loadRun(store, runId)).waiting, 0);
    assert.deepEqual(await store.receipt(runId, 'op-late'), sampleReceipt('op-late'));
  });
}
