/**
 * The text of one ledger row: all entries of a commit and the receipts it stored, without what can be told from the
 * row (run, indexes, most of sequence and time) and with each long string once.
 *
 * `[[receipt…], [entry…]]`, where an entry is `[letters, value…, steps?, delayMs?]`: the letter of its kind, then one
 * per field, the fields' values, and how far its sequence and time are from the row's. See `packEntry` for the marks
 * that are no letters, `ledger-names.ts` for the letters.
 */
import type { EntryCause, Json, JsonObject, LedgerEntry, NewEntry, Receipt } from '../../records.ts';
import { fields, kinds, outcomes, vias } from './ledger-names.ts';
import { PackedStrings, UnpackedStrings } from './packed-strings.ts';

/** What a row says beside its text. */
export interface RowBase {
  runId: string;
  /** Index of the first entry. */
  first: number;
  sequence: number;
  atMs: number;
}

type ReceiptRest = Omit<Receipt, 'operationId' | 'attempt' | 'outcome' | 'via' | 'atMs'>;
type PackedReceipt = [operationId: string, attempt: number, outcomeAndVia: string, delayMs: number, rest: ReceiptRest];
type PackedEntry = [letters: string, ...values: Json[]];
type PackedRow = [PackedReceipt[], PackedEntry[]];

/** A name without a letter; its value is `[name, value]`. */
const OTHER = '_';
/** The receipt that this row holds at that place, together with the entry's operationId, attempt, outcome and via. */
const WHOLE_RECEIPT = '+';
/** An event `[place, event]` whose output is that of the receipt which this row holds there. */
const EVENT_OF_RECEIPT = '!';

/** The text of a row. `receipts` are those that it stores; entries that hold one of them refer to it. */
export function packRow(
  base: Pick<RowBase, 'sequence' | 'atMs'>,
  entries: readonly NewEntry[],
  receipts: readonly Receipt[],
): string {
  const strings = new PackedStrings();
  const packedReceipts = receipts.map((receipt) => packReceipt(base, receipt, strings));
  const packedEntries = entries.map((entry) => packEntry(base, entry, receipts, strings));
  return JSON.stringify([packedReceipts, packedEntries]);
}

/** Throws when the text is not one that `packRow` wrote. */
export function unpackEntries(base: RowBase, text: string): LedgerEntry[] {
  const [packedReceipts, packedEntries] = parseRow(text);
  const strings = new UnpackedStrings();
  const receipts = packedReceipts.map((packed) => unpackReceipt(base, packed, strings));
  return packedEntries.map((packed, place) => unpackEntry(base, packed, place, receipts, strings));
}

/** The receipts that a row stored, in their order. Throws like `unpackEntries`. */
export function unpackReceipts(base: Pick<RowBase, 'atMs'>, text: string): Receipt[] {
  const strings = new UnpackedStrings();
  return parseRow(text)[0].map((packed) => unpackReceipt(base, packed, strings));
}

/** How many entries a row holds. */
export function countEntries(text: string): number {
  return parseRow(text)[1].length;
}

function parseRow(text: string): PackedRow {
  const row: PackedRow = JSON.parse(text);
  return row;
}

function packReceipt(base: { atMs: number }, receipt: Receipt, strings: PackedStrings): PackedReceipt {
  const { operationId, attempt, outcome, via, atMs, ...rest } = receipt;
  const letters = `${outcomes.letterOf(outcome)}${vias.letterOf(via)}`;
  return [strings.pack(operationId), attempt, letters, atMs - base.atMs, rest];
}

function unpackReceipt(base: { atMs: number }, packed: PackedReceipt, strings: UnpackedStrings): Receipt {
  const [operationId, attempt, letters, delayMs, rest] = packed;
  return {
    operationId: strings.unpack(operationId),
    attempt,
    outcome: outcomes.nameOf(letters.charAt(0)),
    via: vias.nameOf(letters.charAt(1)),
    ...rest,
    atMs: base.atMs + delayMs,
  };
}

function packEntry(
  base: { sequence: number; atMs: number },
  entry: NewEntry,
  receipts: readonly Receipt[],
  strings: PackedStrings,
): PackedEntry {
  const whole = receipts.findIndex((receipt) => isWhole(receipt, entry));
  const kind = kinds.letterOf(entry.kind);
  const values: Json[] = kind === undefined ? [entry.kind] : [];
  let letters = kind ?? OTHER;
  const add = (letter: string, value: Json): void => {
    letters += letter;
    values.push(value);
  };
  for (const [name, value] of Object.entries(fieldsOf(entry))) {
    if (value === undefined || name === 'sequence' || name === 'kind' || name === 'atMs') continue;
    if (whole >= 0 && OF_RECEIPT.has(name)) continue;
    const letter = fields.letterOf(name);
    if (letter === undefined) add(OTHER, [name, value]);
    else if (typeof value === 'string') add(letter, strings.pack(value));
    else if (!isObject(value)) add(letter, value);
    else if (name === 'cause') add(letter, packCause(value, entry, strings));
    else if (name === 'receipt') addReceipt(add, letter, value, receipts, whole);
    else if (name === 'event') addEvent(add, letter, value, receipts);
    else add(letter, value);
  }
  const steps = entry.sequence - base.sequence;
  const delayMs = entry.atMs - base.atMs;
  if (steps !== 0 || delayMs !== 0) values.push(steps);
  if (delayMs !== 0) values.push(delayMs);
  return [letters, ...values];
}

const OF_RECEIPT: ReadonlySet<string> = new Set(['operationId', 'attempt', 'outcome', 'via']);

/** Whether the entry holds this very object and says the same of it: as the runtime writes `received`. */
function isWhole(receipt: Receipt, entry: NewEntry): boolean {
  return (
    entry['receipt'] === receipt &&
    entry['operationId'] === receipt.operationId &&
    entry['attempt'] === receipt.attempt &&
    entry['outcome'] === receipt.outcome &&
    entry['via'] === receipt.via
  );
}

type Add = (letter: string, value: Json) => void;

function addReceipt(add: Add, letter: string, value: JsonObject, receipts: readonly unknown[], whole: number): void {
  if (whole >= 0) return add(WHOLE_RECEIPT, whole);
  const place = receipts.indexOf(value);
  add(letter, place < 0 ? value : place);
}

/** A completion's event holds the very output of the receipt it was made from. */
function addEvent(add: Add, letter: string, value: JsonObject, receipts: readonly Receipt[]): void {
  const output = value['output'];
  const place = isObject(output) ? receipts.findIndex((receipt) => receipt.output === output) : -1;
  if (place < 0) add(letter, value);
  else add(EVENT_OF_RECEIPT, [place, { ...value, output: 0 }]);
}

/** 0 when it only repeats the entry's operation; itself when it is no list of known names and texts. */
function packCause(cause: JsonObject, entry: NewEntry, strings: PackedStrings): Json {
  const names = Object.keys(cause);
  if (!names.every((name) => fields.letterOf(name) && typeof cause[name] === 'string')) return cause;
  if (names.length === 1 && names[0] === 'operationId' && cause['operationId'] === entry['operationId']) return 0;
  const letters = names.map((name) => fields.letterOf(name)).join('');
  return [letters, ...names.map((name) => strings.pack(textOf(cause[name])))];
}

function unpackEntry(
  base: RowBase,
  packed: PackedEntry,
  place: number,
  receipts: readonly Receipt[],
  strings: UnpackedStrings,
): LedgerEntry {
  const [letters, ...values] = packed;
  let next = 0;
  const take = (): Json => known(values[next++]);
  const kindLetter = letters.charAt(0);
  const kind = kindLetter === OTHER ? otherKind(take()) : kinds.nameOf(kindLetter);
  const entry: LedgerEntry = { runId: base.runId, index: base.first + place, sequence: 0, kind, atMs: 0 };
  for (const letter of letters.slice(1)) {
    const value = take();
    if (letter === OTHER) {
      const [name, other] = listOf(value);
      entry[textOf(name)] = known(other);
    } else if (letter === WHOLE_RECEIPT) {
      const receipt = known(receipts[Number(value)]);
      const { operationId, attempt, outcome, via } = receipt;
      Object.assign(entry, { operationId, attempt, outcome, via, receipt });
    } else if (letter === EVENT_OF_RECEIPT) {
      const [at, event] = listOf(value);
      const output = known(receipts[Number(at)]).output;
      entry['event'] = isObject(event) ? { ...event, output } : event;
    } else {
      const name = fields.nameOf(letter);
      if (typeof value === 'string') entry[name] = strings.unpack(value);
      else if (name === 'cause') entry[name] = unpackCause(value, strings);
      else if (name === 'receipt' && typeof value === 'number') entry[name] = known(receipts[value]);
      else entry[name] = value;
    }
  }
  if (entry['cause'] === SAME_OPERATION) entry.cause = { operationId: textOf(entry['operationId']) };
  entry.sequence = base.sequence + Number(values[next++] ?? 0);
  entry.atMs = base.atMs + Number(values[next] ?? 0);
  return entry;
}

function unpackCause(value: Json, strings: UnpackedStrings): EntryCause {
  if (value === 0) return SAME_OPERATION;
  if (isObject(value)) return { ...value };
  const [letters, ...ids] = listOf(value);
  const names = textOf(letters)
    .split('')
    .map((letter) => fields.nameOf(letter));
  const cause: EntryCause = Object.fromEntries(names.map((name, at) => [name, strings.unpack(textOf(ids[at]))]));
  return cause;
}

/** Stands for the entry's own operation until all its fields are read. */
const SAME_OPERATION: EntryCause = {};

/** A kind that the list of letters does not have. */
function otherKind(name: Json): LedgerEntry['kind'];
function otherKind(name: Json): Json {
  return name;
}

/** The fields of an entry are strict JSON; their declared type also admits the interfaces of the records. */
function fieldsOf(entry: NewEntry): { [field: string]: Json | undefined };
function fieldsOf(entry: unknown): unknown {
  return entry;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: Json): readonly Json[] {
  if (Array.isArray(value)) return value;
  throw new TypeError('the ledger row was not written by this version or is damaged');
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new TypeError('the ledger row was not written by this version or is damaged');
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('the ledger row was not written by this version or is damaged');
  return value;
}
