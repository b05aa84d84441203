/** Tenant scope: one owner per business key, whatever comes late. */
import assert from 'node:assert/strict';
import { sampleReceipt, type Check } from './trial.ts';

const KEY = { tenant: 'default', key: 'key-1' };

export function reservationSection(check: Check): void {
  check('a key has one owner; asking again is harmless', async ({ store }) => {
    assert.deepEqual(await store.reserve({ ...KEY, runId: 'a', intent: 3 }), { owner: 'a', intent: 3 });
    assert.deepEqual(await store.reserve({ ...KEY, runId: 'a', intent: 3 }), { owner: 'a', intent: 3 });
    assert.deepEqual(await store.reserve({ ...KEY, runId: 'b', intent: 1 }), { owner: 'a', intent: 3 });
    assert.deepEqual(await store.reserve({ ...KEY, tenant: 'other', runId: 'b', intent: 1 }), {
      owner: 'b',
      intent: 1,
    });
  });

  check('of many at once one gets the key', async ({ store }) => {
    const ids = Array.from({ length: 10 }, (_, index) => `run-${index}`);
    const answers = await Promise.all(ids.map((runId) => store.reserve({ ...KEY, runId, intent: 1 })));
    assert.equal(new Set(answers.map(({ owner }) => owner)).size, 1);
  });

  check('a success keeps the key, with its receipt for everybody', async ({ store }) => {
    const receipt = sampleReceipt('op-1');
    await store.reserve({ ...KEY, runId: 'a', intent: 1 });
    await store.settleReservation({ ...KEY, runId: 'a', intent: 1, receipt });
    await store.settleReservation({ ...KEY, runId: 'a', intent: 1, receipt: null });

    assert.deepEqual(await store.reserve({ ...KEY, runId: 'b', intent: 1 }), { owner: 'a', intent: 1, receipt });
  });

  check('a failure or a withdrawal frees the key', async ({ store }) => {
    for (const [intent, receipt] of [
      [1, sampleReceipt('op-1', { outcome: 'failed' })],
      [2, null],
    ] as const) {
      await store.reserve({ ...KEY, runId: 'a', intent });
      await store.settleReservation({ ...KEY, runId: 'a', intent, receipt });
      assert.equal((await store.reserve({ ...KEY, runId: 'b', intent })).owner, 'b');
      await store.settleReservation({ ...KEY, runId: 'b', intent, receipt: null });
    }
  });

  check('a settle sent late frees nothing that was reserved again', async ({ store }) => {
    await store.reserve({ ...KEY, runId: 'a', intent: 1 });
    await store.settleReservation({ ...KEY, runId: 'a', intent: 1, receipt: null });
    await store.reserve({ ...KEY, runId: 'a', intent: 5 });
    await store.settleReservation({ ...KEY, runId: 'a', intent: 1, receipt: null });
    await store.settleReservation({ ...KEY, runId: 'b', intent: 5, receipt: null });

    assert.equal((await store.reserve({ ...KEY, runId: 'b', intent: 9 })).owner, 'a');
  });

  check('a reserve sent late, after its intent was settled, is refused', async ({ store }) => {
    await store.settleReservation({ ...KEY, runId: 'a', intent: 4, receipt: null });

    assert.deepEqual(await store.reserve({ ...KEY, runId: 'a', intent: 4 }), { owner: '', intent: 0, refused: true });
    assert.deepEqual(await store.reserve({ ...KEY, runId: 'b', intent: 1 }), { owner: 'b', intent: 1 });
    await store.settleReservation({ ...KEY, runId: 'b', intent: 1, receipt: null });
    assert.deepEqual(await store.reserve({ ...KEY, runId: 'a', intent: 5 }), { owner: 'a', intent: 5 });
  });
}
