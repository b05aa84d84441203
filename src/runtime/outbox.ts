/** Delivers what a run has for others; each item is idempotent at its target and struck off by a later commit. */
import type { Store } from '../persistence/store.ts';
import type { RunRecord } from '../records.ts';

/** Delivers the items from `from` on, in order. */
export async function deliverOutbox(store: Store, record: RunRecord, from: number): Promise<void> {
  const { runId, tenant, outbox } = record;
  for (const item of outbox.slice(from)) {
    if (item.kind !== 'settle_reservation') continue;
    const { to: key, intent, receipt } = item;
    await store.settleReservation({ tenant, key, runId, intent, receipt });
  }
}
