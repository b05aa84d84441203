/**
 * Checks the digests that the store keeps over its own bytes of a run: the chain over the ledger rows, the receipts in
 * them against the rows that refer to them, and the record's chain. Costs one pass over the history.
 */
import { messageOf } from '../../errors.ts';
import type { Receipt } from '../../records.ts';
import { EMPTY_CHAIN } from '../store-digest.ts';
import type { AuditProblem } from '../store.ts';
import type { Database } from './database.ts';
import { linkOf, rowDigest, rowsBehind, type LedgerRow, type ReceiptPlace } from './ledger-rows.ts';
import { countEntries, unpackReceipts } from './ledger-text.ts';
import { absencesOf, operationsWithReceipts } from './operation-rows.ts';
import type { RunRow } from './run-rows.ts';
import { readRecord } from './stored-runs.ts';

const ROWS_AT_ONCE = 500;

interface FoundReceipt {
  sequence: number;
  receipt: Receipt;
}

export function auditRun(database: Database, run: RunRow): AuditProblem[] {
  const problems: AuditProblem[] = [];
  const receipts = new Map<string, FoundReceipt>();
  const broken = auditLedger(database, run, receipts);
  if (broken) problems.push(broken);
  // Behind a break nothing is known of the receipts.
  else problems.push(...auditReceipts(database, run, receipts));
  const rebuilt = readRecord(database, run);
  if ('unreadable' in rebuilt) problems.push({ sequence: run.sequence, what: `record: ${rebuilt.unreadable}` });
  return problems;
}

/** The first row that breaks the chain, if any; collects the receipts of the rows before it. */
function auditLedger(database: Database, run: RunRow, receipts: Map<string, FoundReceipt>): AuditProblem | null {
  let digest = run.entryCount === 0 && run.ledgerDigest === '' ? '' : EMPTY_CHAIN;
  let next = 0;
  let sequence = 0;
  for (const row of allRows(database, run)) {
    digest = rowDigest(digest, row);
    if (row.first !== next || linkOf(digest) !== row.link) {
      const entries = `ledger entries from index ${next} on`;
      return { sequence: Math.max(sequence, row.sequence), what: `${entries}: changed, moved or removed` };
    }
    try {
      next += countEntries(row.body);
      for (const [place, receipt] of unpackReceipts(row, row.body).entries()) {
        receipts.set(placeName({ row: row.row, place }), { sequence: row.sequence, receipt });
      }
    } catch (error) {
      return { sequence: row.sequence, what: `ledger entries from index ${next} on: ${messageOf(error)}` };
    }
    sequence = row.sequence;
  }
  if (next === run.entryCount && digest === run.ledgerDigest) return null;
  return { sequence: run.sequence, what: `ledger: ${next} entries are there, ${run.entryCount} were written` };
}

function* allRows(database: Database, run: RunRow): Generator<LedgerRow> {
  let last: LedgerRow | null = null;
  do {
    const page: LedgerRow[] = rowsBehind(database, run.run, last, ROWS_AT_ONCE);
    yield* page;
    last = page.at(-1) ?? null;
  } while (last);
}

/** Every receipt in the ledger is referred to once, by its own operation and with its outcome; and none is missing. */
function auditReceipts(database: Database, run: RunRow, receipts: Map<string, FoundReceipt>): AuditProblem[] {
  const problems: AuditProblem[] = [];
  const check = (operationId: string, outcome: Receipt['outcome'], at: ReceiptPlace, attempt?: number): void => {
    const found = receipts.get(placeName(at));
    receipts.delete(placeName(at));
    const isOwn = found?.receipt.operationId === operationId && found.receipt.outcome === outcome;
    if (isOwn && (attempt === undefined || found.receipt.attempt === attempt)) return;
    problems.push({
      sequence: found?.sequence ?? run.sequence,
      what: `receipt of ${operationId}: kept as ${outcome}, the ledger holds ${found?.receipt.outcome ?? 'none'}`,
    });
  };
  for (const operation of operationsWithReceipts(database, run.run)) {
    if (operation.terminal) check(operation.operationId, operation.terminal.outcome, operation.terminal.at);
    for (const { attempt, at } of absencesOf(database, operation)) {
      check(operation.operationId, 'not_executed', at, attempt);
    }
  }
  for (const { sequence, receipt } of receipts.values()) {
    problems.push({
      sequence,
      what: `receipt of ${receipt.operationId}: in the ledger, but its operation does not know it`,
    });
  }
  return problems;
}

function placeName({ row, place }: ReceiptPlace): string {
  return `${row}.${place}`;
}
