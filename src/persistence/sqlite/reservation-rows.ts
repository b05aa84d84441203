/** Business keys in tenant scope: who owns each, and which intents are settled. Inside a caller's transaction. */
import type { Receipt } from '../../records.ts';
import { receiptOf } from '../stored-text.ts';
import type { ReservationAnswer, ReservationRequest } from '../store.ts';
import { numberOf, textOrNull, type Database } from './database.ts';

interface Reservation {
  owner: string | null;
  intent: number;
  receipt: string | null;
}

export function reserveKey(database: Database, { tenant, key, runId, intent }: ReservationRequest): ReservationAnswer {
  const row = findReservation(database, tenant, key);
  const settled = database.get('SELECT intent FROM {settled} WHERE tenant = ? AND key = ? AND run_id = ?', [
    tenant,
    key,
    runId,
  ]);
  if (settled && numberOf(settled[0]) >= intent) return { ...answer(row), refused: true };
  if (row.owner !== null && row.owner !== runId) return answer(row);
  const granted = { ...row, owner: runId, intent: Math.max(row.intent, intent) };
  saveReservation(database, tenant, key, granted);
  return answer(granted);
}

export function settleKey(database: Database, request: ReservationRequest & { receipt: Receipt | null }): void {
  const { tenant, key, runId, intent, receipt } = request;
  database.run(
    `INSERT INTO {settled} VALUES (?, ?, ?, ?)
     ON CONFLICT (tenant, key, run_id) DO UPDATE SET intent = max(intent, excluded.intent)`,
    [tenant, key, runId, intent],
  );
  const row = findReservation(database, tenant, key);
  if (row.owner !== runId || row.intent !== intent || row.receipt !== null) return;
  const next =
    receipt?.outcome === 'succeeded'
      ? { ...row, receipt: JSON.stringify(receipt) }
      : { owner: null, intent: 0, receipt: null };
  saveReservation(database, tenant, key, next);
}

/** Of an erased run: what it owns without a receipt is free again. */
export function forgetReservations(database: Database, runId: string): void {
  database.run('UPDATE {reservations} SET owner = NULL, intent = 0 WHERE owner = ? AND receipt IS NULL', [runId]);
  database.run('DELETE FROM {settled} WHERE run_id = ?', [runId]);
}

function findReservation(database: Database, tenant: string, key: string): Reservation {
  const row = database.get('SELECT owner, intent, receipt FROM {reservations} WHERE tenant = ? AND key = ?', [
    tenant,
    key,
  ]);
  if (!row) return { owner: null, intent: 0, receipt: null };
  return { owner: textOrNull(row[0]), intent: numberOf(row[1]), receipt: textOrNull(row[2]) };
}

function saveReservation(database: Database, tenant: string, key: string, row: Reservation): void {
  database.run('INSERT OR REPLACE INTO {reservations} VALUES (?, ?, ?, ?, ?)', [
    tenant,
    key,
    row.owner,
    row.intent,
    row.receipt,
  ]);
}

function answer({ owner, intent, receipt }: Reservation): ReservationAnswer {
  return { owner: owner ?? '', intent, ...(receipt === null ? {} : { receipt: receiptOf(receipt) }) };
}
