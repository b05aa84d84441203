/**
 * Operations of one run: their key, how they closed, and where their receipts are. Read for one commit at a time,
 * changed in memory, written at the end: each row once.
 */
import type { ClosedOperation, OperationKey, OperationStatus, Receipt, StoredOperation } from '../../records.ts';
import { sha256Hex } from '../store-digest.ts';
import { numberOf, numberOrNull, packId, unpackId, type Database } from './database.ts';
import type { SqlRow, SqlValue } from './driver.ts';
import { receiptAt, type ReceiptPlace } from './ledger-rows.ts';

/** Part of the stored format: may only grow at its end. */
const STATUSES: readonly OperationStatus[] = [
  'intended',
  'blocked',
  'attempted',
  'unknown',
  'succeeded',
  'failed',
  'not_executed',
  'withdrawn',
  'compensating',
  'compensated',
  'escalated',
];
/** Terminal outcomes; `not_executed` is a fact of one attempt and kept apart. */
const OUTCOMES: readonly Receipt['outcome'][] = ['succeeded', 'failed'];

const COLUMNS = `operation, id, key, generation, input, status, attempts, closed_input, outcome, receipt_row,
  receipt_place, facts`;

const BY_ID = `SELECT ${COLUMNS} FROM {operations} WHERE run = ? AND id_hash = ?`;
const BY_KEY = `SELECT ${COLUMNS} FROM {operations} WHERE run = ? AND key_hash = ? ORDER BY generation DESC`;
const BY_EITHER = `SELECT 1 FROM {operations} WHERE run = ? AND key_hash = ?
  UNION ALL SELECT 1 FROM {operations} WHERE run = ? AND id_hash = ? LIMIT 1`;

export interface OperationRow {
  /** Null until written for the first time. */
  number: number | null;
  operationId: string;
  key: OperationKey | null;
  closed: ClosedOperation | null;
  terminal: { outcome: Receipt['outcome']; at: ReceiptPlace } | null;
  /** Stored receipts of any outcome. An open operation that has some is found without looking at the closed ones. */
  facts: number;
  absences: { attempt: number; at: ReceiptPlace }[];
  isChanged: boolean;
}

export class OperationRows {
  readonly #database: Database;
  readonly #run: number;
  readonly #rows = new Map<string, OperationRow | null>();

  constructor(database: Database, run: number) {
    this.#database = database;
    this.#run = run;
  }

  find(operationId: string): OperationRow | null {
    const known = this.#rows.get(operationId);
    if (known !== undefined) return known;
    const values = [this.#run, shortHash(operationId)];
    const row = this.#database.get(BY_ID, values);
    let found = row ? operationOf(row) : null;
    if (found && found.operationId !== operationId)
      found = this.#among(BY_ID, values, (other) => other.operationId === operationId);
    this.#rows.set(operationId, found);
    return found;
  }

  /** The latest operation of a business key. */
  findByKey(keyDigest: string): OperationRow | null {
    const values = [this.#run, shortHash(keyDigest)];
    const row = this.#database.get(BY_KEY, values);
    let latest = row ? operationOf(row) : null;
    if (latest && latest.key?.keyDigest !== keyDigest)
      latest = this.#among(BY_KEY, values, (other) => other.key?.keyDigest === keyDigest);
    return latest ? this.find(latest.operationId) : null;
  }

  /** Whether neither the key nor the operation was ever seen: what a new intent asks, in one look. */
  areNew(keyDigest: string, operationId: string): boolean {
    if (this.#rows.get(operationId)) return false;
    const row = this.#database.get(BY_EITHER, [this.#run, shortHash(keyDigest), this.#run, shortHash(operationId)]);
    if (row) return false;
    this.#rows.set(operationId, null);
    return true;
  }

  /** Rows whose short hashes are equal though their names are not: one in 2^48. */
  #among(sql: string, values: number[], isIt: (row: OperationRow) => boolean): OperationRow | null {
    return this.#database.all(sql, values).map(operationOf).find(isIt) ?? null;
  }

  /** The row, created in memory if there is none. */
  open(operationId: string): OperationRow {
    let row = this.find(operationId);
    if (!row) {
      row = {
        number: null,
        operationId,
        key: null,
        closed: null,
        terminal: null,
        facts: 0,
        absences: [],
        isChanged: true,
      };
      this.#rows.set(operationId, row);
    }
    row.isChanged = true;
    return row;
  }

  /** Notes where a receipt is that was not stored before. */
  addFact(receipt: Receipt, at: ReceiptPlace): void {
    const row = this.open(receipt.operationId);
    row.facts += 1;
    if (receipt.outcome === 'not_executed') row.absences.push({ attempt: receipt.attempt, at });
    else row.terminal = { outcome: receipt.outcome, at };
  }

  isAbsent(row: OperationRow, attempt: number): boolean {
    if (row.absences.some((absence) => absence.attempt === attempt)) return true;
    if (row.number === null || row.facts === 0) return false;
    return Boolean(
      this.#database.get('SELECT 1 FROM {absences} WHERE operation = ? AND attempt = ?', [row.number, attempt]),
    );
  }

  stored(row: OperationRow): StoredOperation {
    const { operationId, key, closed, terminal } = row;
    return { operationId, key, closed, receipt: terminal && receiptAt(this.#database, terminal.at) };
  }

  save(): void {
    for (const row of this.#rows.values()) {
      if (!row?.isChanged) continue;
      row.number ??= this.#insert(row);
      this.#update(row);
      for (const { attempt, at } of row.absences) {
        this.#database.run('INSERT INTO {absences} VALUES (?, ?, ?, ?)', [row.number, attempt, at.row, at.place]);
      }
    }
  }

  #insert(row: OperationRow): number {
    const id = packId(row.operationId);
    const values = [this.#run, shortHash(row.operationId), id, ...keyValues(row), ...stateValues(row)];
    row.isChanged = false;
    return this.#database.run(
      `INSERT INTO {operations} (run, id_hash, id, key_hash, key, generation, input, status, attempts, closed_input,
         outcome, receipt_row, receipt_place, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      values,
    );
  }

  #update(row: OperationRow): void {
    if (!row.isChanged) return;
    row.isChanged = false;
    this.#database.run(
      `UPDATE {operations} SET status = ?, attempts = ?, closed_input = ?, outcome = ?, receipt_row = ?,
         receipt_place = ?, facts = ? WHERE operation = ?`,
      [...stateValues(row), row.number],
    );
  }

  /** Gives a stored operation its key again: of a later generation, or reopened. */
  rekey(row: OperationRow, key: OperationKey): void {
    row.key = key;
    row.closed = null;
    row.isChanged = true;
    if (row.number === null) return;
    this.#database.run('UPDATE {operations} SET key_hash = ?, key = ?, generation = ?, input = ? WHERE operation = ?', [
      ...keyValues(row),
      row.number,
    ]);
  }
}

/** Receipts of operations that are open: terminal ones by id, absences by `id#attempt`. */
export function openReceipts(database: Database, run: number): Record<string, Receipt> {
  const receipts: [string, Receipt][] = [];
  const rows = database.all(`SELECT ${COLUMNS} FROM {operations} WHERE run = ? AND status IS NULL AND facts > 0`, [
    run,
  ]);
  for (const row of rows.map(operationOf)) {
    if (row.terminal) receipts.push([row.operationId, receiptAt(database, row.terminal.at)]);
    for (const { attempt, at } of absencesOf(database, row)) {
      receipts.push([`${row.operationId}#${attempt}`, receiptAt(database, at)]);
    }
  }
  return Object.fromEntries(receipts);
}

export function absencesOf(database: Database, row: OperationRow): OperationRow['absences'] {
  const rows = database.all('SELECT attempt, receipt_row, receipt_place FROM {absences} WHERE operation = ?', [
    row.number,
  ]);
  return rows.map(([attempt, at, place]) => ({
    attempt: numberOf(attempt),
    at: { row: numberOf(at), place: numberOf(place) },
  }));
}

/** All operations with receipts, for an audit. */
export function operationsWithReceipts(database: Database, run: number): OperationRow[] {
  return database.all(`SELECT ${COLUMNS} FROM {operations} WHERE run = ? AND facts > 0`, [run]).map(operationOf);
}

/** Digests and operation ids are hashes already. */
const HASHED_ID = /^(?:op_)?([0-9a-f]{12})[0-9a-f]*$/;

/** 48 bits: enough to find a row by; the whole id is compared afterwards. */
function shortHash(id: string): number {
  const hex = HASHED_ID.exec(id)?.[1] ?? sha256Hex(id).slice(0, 12);
  return Number.parseInt(hex, 16);
}

function keyValues({ key }: OperationRow): SqlValue[] {
  if (!key) return [null, null, null, null];
  return [shortHash(key.keyDigest), packId(key.keyDigest), key.generation, packId(key.inputDigest)];
}

function stateValues({ key, closed, terminal, facts }: OperationRow): SqlValue[] {
  return [
    closed ? STATUSES.indexOf(closed.status) : null,
    closed?.attempts ?? null,
    closed && closed.inputDigest !== key?.inputDigest ? packId(closed.inputDigest) : null,
    terminal ? OUTCOMES.indexOf(terminal.outcome) : null,
    terminal?.at.row ?? null,
    terminal?.at.place ?? null,
    facts,
  ];
}

function operationOf(row: SqlRow): OperationRow {
  const operationId = unpackId(row[1]);
  const inputDigest = row[4] === null ? '' : unpackId(row[4]);
  const key =
    row[2] === null ? null : { keyDigest: unpackId(row[2]), operationId, generation: numberOf(row[3]), inputDigest };
  const status = numberOrNull(row[5]);
  const outcome = numberOrNull(row[8]);
  return {
    number: numberOf(row[0]),
    operationId,
    key,
    closed:
      status === null
        ? null
        : {
            operationId,
            status: STATUSES[status] ?? 'escalated',
            attempts: numberOf(row[6]),
            inputDigest: row[7] === null ? inputDigest : unpackId(row[7]),
          },
    terminal:
      outcome === null
        ? null
        : {
            outcome: OUTCOMES[outcome] ?? 'failed',
            at: { row: numberOf(row[9]), place: numberOf(row[10]) },
          },
    facts: numberOf(row[11]),
    absences: [],
    isChanged: false,
  };
}
