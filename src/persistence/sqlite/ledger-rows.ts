/** The ledger of a run: rows appended with a digest chain over them, and read back as entries. */
import type { NewEntry, Receipt } from '../../records.ts';
import { chainDigest, EMPTY_CHAIN } from '../store-digest.ts';
import { checkEntrySizes } from '../store-checks.ts';
import { numberOf, textOf, type Database } from './database.ts';
import type { SqlRow } from './driver.ts';
import { packRow, unpackReceipts } from './ledger-text.ts';
import type { RunRow } from './run-rows.ts';

export interface LedgerRow {
  row: number;
  first: number;
  sequence: number;
  atMs: number;
  link: number;
  body: string;
}

/** Where a stored receipt is: the ledger row and its place among that row's receipts. */
export interface ReceiptPlace {
  row: number;
  place: number;
}

/** A row ready to be written: everything that can be refused has been checked. */
export interface PreparedRow {
  sequence: number;
  atMs: number;
  body: string;
  entryCount: number;
  receiptCount: number;
}

/** @throws ENTRY_TOO_LARGE before anything is written */
export function prepareRow(
  run: Pick<RunRow, 'runId'>,
  atMs: number,
  entries: readonly NewEntry[],
  receipts: readonly Receipt[],
  sequence: number,
): PreparedRow | null {
  if (entries.length === 0 && receipts.length === 0) return null;
  const body = packRow({ sequence, atMs }, entries, receipts);
  checkEntrySizes(run.runId, entries, body.length * 3);
  return { sequence, atMs, body, entryCount: entries.length, receiptCount: receipts.length };
}

/** Appends a row; returns its number and the changes to the row of the run. */
export function appendRow(
  database: Database,
  run: RunRow,
  prepared: PreparedRow,
): { row: number; changes: Pick<RunRow, 'entryCount' | 'ledgerDigest' | 'receiptCount'> } {
  const { sequence, atMs, body } = prepared;
  const first = run.entryCount;
  const digest = rowDigest(run.ledgerDigest || EMPTY_CHAIN, { first, sequence, atMs, body });
  const row = database.run('INSERT INTO {ledger} (run, first, sequence, at, link, body) VALUES (?, ?, ?, ?, ?, ?)', [
    run.run,
    first,
    sequence,
    atMs,
    linkOf(digest),
    body,
  ]);
  const changes = {
    entryCount: first + prepared.entryCount,
    ledgerDigest: digest,
    receiptCount: run.receiptCount + prepared.receiptCount,
  };
  return { row, changes };
}

export function rowDigest(previous: string, row: Pick<LedgerRow, 'first' | 'sequence' | 'atMs' | 'body'>): string {
  return chainDigest(previous, `${row.first} ${row.sequence} ${row.atMs} ${row.body}`);
}

/** What each row keeps of the chain, so that an audit can say where it breaks: 48 bits. */
export function linkOf(digest: string): number {
  return Number.parseInt(digest.slice(0, 12), 16);
}

/** Rows in order, from the one that holds entry `first` on. */
export function ledgerRows(database: Database, run: number, first: number, limit: number): LedgerRow[] {
  const start = database.get('SELECT max(first) FROM {ledger} WHERE run = ? AND first <= ?', [run, first]);
  const rows = database.all(
    'SELECT row, first, sequence, at, link, body FROM {ledger} WHERE run = ? AND first >= ? ORDER BY first, row LIMIT ?',
    [run, typeof start?.[0] === 'number' ? start[0] : 0, limit],
  );
  return rows.map(ledgerRowOf);
}

/** The rows behind a row, or the first ones, in order. */
export function rowsBehind(database: Database, run: number, behind: LedgerRow | null, limit: number): LedgerRow[] {
  const rows = database.all(
    `SELECT row, first, sequence, at, link, body FROM {ledger} WHERE run = ? AND (first, row) > (?, ?)
     ORDER BY first, row LIMIT ?`,
    [run, behind?.first ?? -1, behind?.row ?? -1, limit],
  );
  return rows.map(ledgerRowOf);
}

/**
 * The index of a row at or before the first entry of `sequence`. Sequences never fall along the ledger, so this is a
 * search by halves through the index.
 */
export function firstOfSequence(database: Database, run: RunRow, sequence: number): number {
  let low = 0;
  let high = run.entryCount;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = database.get(
      'SELECT first, sequence FROM {ledger} WHERE run = ? AND first <= ? ORDER BY first DESC LIMIT 1',
      [run.run, middle],
    );
    if (!row || numberOf(row[1]) < sequence) low = middle + 1;
    else high = numberOf(row[0]);
  }
  // The row before may end with entries of this sequence.
  return Math.max(0, low - 1);
}

export function receiptAt(database: Database, at: ReceiptPlace): Receipt {
  const row = database.get('SELECT at, body FROM {ledger} WHERE row = ?', [at.row]);
  const receipt = row && unpackReceipts({ atMs: numberOf(row[0]) }, textOf(row[1]))[at.place];
  if (!receipt) throw new TypeError(`ledger row ${at.row} holds no receipt ${at.place}`);
  return receipt;
}

function ledgerRowOf(row: SqlRow): LedgerRow {
  return {
    row: numberOf(row[0]),
    first: numberOf(row[1]),
    sequence: numberOf(row[2]),
    atMs: numberOf(row[3]),
    link: numberOf(row[4]),
    body: textOf(row[5]),
  };
}
