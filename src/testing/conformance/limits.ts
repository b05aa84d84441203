/** Limits: refused with a code before anything is written. */
import assert from 'node:assert/strict';
import { LIMITS } from '../../persistence/store.ts';
import {
  claimRun,
  commitAfter,
  createRun,
  firstCommit,
  freshId,
  ledgerOf,
  loadRun,
  sampleEvent,
  sampleReceipt,
  type Check,
} from './trial.ts';

export function limitSection(check: Check): void {
  check('an event of 256 KB is taken, a larger one is not', async ({ store }) => {
    const runId = await createRun(store);
    const room = LIMITS.eventBytes - JSON.stringify(sampleEvent('event-1', { text: '' })).length;
    await store.accept(runId, sampleEvent('event-1', { text: 'x'.repeat(room) }));
    const large = sampleEvent('event-2', { text: 'ż'.repeat(room / 2 + 1) });
    await assert.rejects(store.accept(runId, large), { code: 'EVENT_TOO_LARGE' });

    assert.equal((await loadRun(store, runId)).waiting, 1);
    assert.equal((await store.accept(runId, sampleEvent('event-2'))).kind, 'accepted');
  });

  check('a record above 4 MB is refused and the one before stays', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    const full = JSON.stringify({ format: 1, text: 'x'.repeat(LIMITS.recordBytes) });
    await assert.rejects(store.commit(commitAfter(claim, { record: { full } })), { code: 'RECORD_TOO_LARGE' });
    await assert.rejects(store.create(firstCommit(freshId('run'), { record: { full } })), { code: 'RECORD_TOO_LARGE' });

    assert.deepEqual((await loadRun(store, runId)).record, claim.record);
    assert.equal((await store.commit(commitAfter(claim))).kind, 'ok');
  });

  check('an entry is measured beside its event, output and receipt', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    const text = 'x'.repeat(LIMITS.entryBytes);
    const entry = { sequence: 2, kind: 'transitioned', atMs: 0 } as const;
    const large = commitAfter(claim, { entries: [{ ...entry, note: text }] });
    await assert.rejects(store.commit(large), { code: 'ENTRY_TOO_LARGE' });
    assert.equal((await ledgerOf(store, runId)).length, 1);
    const receipt = sampleReceipt('op', { output: text });
    const held = commitAfter(claim, { entries: [{ ...entry, event: { type: 'GO', text }, output: text, receipt }] });

    assert.equal((await store.commit(held)).kind, 'ok');
    await assert.rejects(
      store.create(firstCommit(freshId('run'), { entries: [{ ...entry, sequence: 1, note: text }] })),
      {
        code: 'ENTRY_TOO_LARGE',
      },
    );
  });

  check('an inbox takes 10,000 items, and more once some are consumed; receipts always', async ({ store }) => {
    const runId = await createRun(store);
    const claim = await claimRun(store, runId);
    await Promise.all(Array.from({ length: LIMITS.inboxItems }, () => store.accept(runId, sampleEvent())));
    await assert.rejects(store.accept(runId, sampleEvent('event-more')), { code: 'INBOX_FULL' });
    assert.equal(await store.receive(runId, sampleReceipt('op-1')), 'stored');
    assert.equal((await store.commit(commitAfter(claim, { position: 2 }))).kind, 'ok');

    assert.equal((await store.accept(runId, sampleEvent('event-more'))).kind, 'accepted');
  });
}
