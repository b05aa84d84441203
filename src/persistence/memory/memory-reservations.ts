/** Business keys in tenant scope: who owns each, and which intents are settled. */
import type { Receipt } from '../../records.ts';
import { receiptOf } from '../stored-text.ts';
import type { ReservationAnswer, ReservationRequest } from '../store.ts';

interface Row {
  owner: string | null;
  intent: number;
  receipt: string | null;
  /** Highest settled intent by run. */
  settled: Map<string, number>;
}

export class MemoryReservations {
  readonly #rows = new Map<string, Row>();

  /** Gives the key to the run if it is free or the run's own; an intent that was settled is refused. */
  reserve({ tenant, key, runId, intent }: ReservationRequest): ReservationAnswer {
    const row = this.#row(tenant, key);
    if ((row.settled.get(runId) ?? -1) >= intent) return { ...answer(row), refused: true };
    if (row.owner === null || row.owner === runId) {
      row.owner = runId;
      row.intent = Math.max(row.intent, intent);
    }
    return answer(row);
  }

  /** Frees only the reservation of its own run and intent; a success keeps the key, with its receipt. */
  settle({ tenant, key, runId, intent, receipt }: ReservationRequest & { receipt: Receipt | null }): void {
    const row = this.#row(tenant, key);
    row.settled.set(runId, Math.max(row.settled.get(runId) ?? 0, intent));
    if (row.owner !== runId || row.intent !== intent || row.receipt !== null) return;
    if (receipt?.outcome === 'succeeded') row.receipt = JSON.stringify(receipt);
    else free(row);
  }

  /** Of an erased run: what it owns without a receipt is free again. */
  forget(runId: string): void {
    for (const row of this.#rows.values()) {
      row.settled.delete(runId);
      if (row.owner === runId && row.receipt === null) free(row);
    }
  }

  #row(tenant: string, key: string): Row {
    const name = JSON.stringify([tenant, key]);
    const row = this.#rows.get(name) ?? { owner: null, intent: 0, receipt: null, settled: new Map<string, number>() };
    this.#rows.set(name, row);
    return row;
  }
}

function free(row: Row): void {
  row.owner = null;
  row.intent = 0;
}

function answer(row: Row): ReservationAnswer {
  const { owner, intent, receipt } = row;
  return { owner: owner ?? '', intent, ...(receipt === null ? {} : { receipt: receiptOf(receipt) }) };
}
