/** The ledger: append-only, one unbroken row of indexes, in the order in which things were stored. */
import assert from 'node:assert/strict';
import type { NewEntry } from '../../records.ts';
import {
  claimRun,
  commitAfter,
  commitOk,
  createRun,
  ledgerOf,
  sampleEvent,
  sampleReceipt,
  type Check,
} from './trial.ts';

export function ledgerSection(check: Check): void {
  check('indexes count from 0 without a gap, sequences never fall', async ({ store }) => {
    const runId = await createRun(store);
    let claim = await claimRun(store, runId);
    for (let step = 0; step < 30; step++) {
      const sequence = claim.facts.sequence + 2;
      const entries = [sequence - 1, sequence - 1, sequence].map((at): NewEntry => ({
        sequence: at,
        kind: 'transitioned',
        atMs: step,
      }));
      await store.accept(runId, sampleEvent());
      if (step % 3 === 0) await store.receive(runId, sampleReceipt(`op-${step}`));
      claim = await commitOk(store, claim, { sequence, entries: step % 5 === 0 ? [] : entries });
    }
    const entries = await ledgerOf(store, runId);

    assert.equal(entries.length, 1 + 30 + 10 + 24 * 3);
    assert.deepEqual(
      entries.map(({ index }) => index),
      [...entries.keys()],
    );
    assert.ok(entries.every((entry, index) => index === 0 || entry.sequence >= (entries[index - 1]?.sequence ?? 0)));
    assert.ok(entries.every((entry) => entry.runId === runId));
    assert.deepEqual(await store.audit(runId), []);
  });

  check('an entry comes back with every field it had', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    const digest = 'b'.repeat(64);
    const entries: NewEntry[] = [
      {
        sequence: 1,
        kind: 'stale',
        atMs: 7,
        cause: { eventId: 'e', invocationId: '1.0', timerId: 't', operationId: 'op' },
      },
      {
        sequence: 2,
        kind: 'intended',
        atMs: 8,
        operationId: `op_${'c'.repeat(32)}`,
        snapshotDigest: digest,
        again: digest,
      },
      {
        sequence: 2,
        kind: 'attempted',
        atMs: -5,
        operationId: `op_${'c'.repeat(32)}`,
        attempt: 1,
        x: 'one letter',
        _x: 1,
      },
      {
        sequence: 2,
        kind: 'received',
        atMs: 9,
        receipt: sampleReceipt('op', { outcome: 'unknown' }),
        event: 'text',
        output: 0,
      },
    ];
    await commitOk(store, claim, { entries });

    const stored = (await ledgerOf(store, runId)).slice(1);
    assert.deepEqual(
      stored,
      entries.map((entry, index) => ({ ...entry, runId, index: index + 1 })),
    );
  });

  check('reading from a sequence, from an index, and no more than asked', async ({ store }) => {
    const runId = await createRun(store);
    let claim = await claimRun(store, runId);
    for (let step = 0; step < 250; step++) claim = await commitOk(store, claim);
    const all = await ledgerOf(store, runId);

    assert.equal(all.length, 251);
    assert.deepEqual(
      await ledgerOf(store, runId, { fromSequence: 200 }),
      all.filter(({ sequence }) => sequence >= 200),
    );
    assert.deepEqual(await ledgerOf(store, runId, { fromIndex: 249 }), all.slice(249));
    assert.deepEqual(await ledgerOf(store, runId, { fromSequence: 10, limit: 3 }), all.slice(9, 12));
    assert.deepEqual(await ledgerOf(store, runId, { fromSequence: 10, fromIndex: 100, limit: 1 }), all.slice(100, 101));
    assert.deepEqual(await ledgerOf(store, runId, { fromSequence: 999 }), []);
    assert.deepEqual(await ledgerOf(store, runId, { limit: 0 }), []);
  });

  check('entries out of order within a commit are refused', async ({ store }) => {
    const claim = await claimRun(store, await createRun(store));
    const entry = (sequence: number): NewEntry => ({ sequence, kind: 'emitted', atMs: 0 });
    for (const entries of [[entry(2), entry(1)], [entry(0)], [entry(3)]]) {
      await assert.rejects(store.commit(commitAfter(claim, { entries })), { code: 'INVALID_ARGUMENT' });
    }
  });
}
