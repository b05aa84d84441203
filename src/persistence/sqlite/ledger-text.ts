/**
 * The text of one ledger row: all entries of a commit and the receipts it stored, without what can be told from the
 * row (run, indexes, most of sequence and time) and with each long string once. It is part of the stored format: the
 * lists below may only grow at their ends.
 *
 * `[[receipt…], [entry…]]` · entry `[kind, sequence - base, atMs - base, fields, receipt of event.output?]` ·
 * receipt `[operationId, attempt, outcome, via, atMs - base, rest]`.
 */
import type { EntryCause, EntryKind, Json, JsonObject, LedgerEntry, NewEntry, Receipt } from '../../records.ts';
import { PackedStrings, UnpackedStrings } from './packed-strings.ts';

const FIELDS = [
  'cause',
  'eventId',
  'invocationId',
  'timerId',
  'operationId',
  'event',
  'from',
  'to',
  'agentVersion',
  'snapshotDigest',
  'receipt',
  'attempt',
  'outcome',
  'via',
  'tool',
  'input',
  'generation',
  'type',
  'body',
  'by',
  'position',
  'reason',
  'message',
  'status',
  'output',
  'dueAtMs',
  'key',
  'inputDigest',
  'requestId',
  'verdict',
  'random',
  'fence',
] as const;
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LETTER_OF = new Map<string, string>(FIELDS.map((name, index) => [name, LETTERS.charAt(index)]));
const NAME_OF = new Map<string, string>(FIELDS.map((name, index) => [LETTERS.charAt(index), name]));

/** Kinds that are not in the list are written by name. */
const KINDS: readonly EntryKind[] = [
  'started',
  'accepted',
  'refused',
  'deferred',
  'dropped',
  'joined',
  'withdrawn',
  'blocked',
  'conflict',
  'compacted',
  'transitioned',
  'intended',
  'attempted',
  'received',
  'reconciled',
  'proposed',
  'approval_requested',
  'approval_decided',
  'approval_invalidated',
  'timer_armed',
  'timer_fired',
  'timer_cancelled',
  'artifact',
  'spent',
  'stale',
  'emitted',
  'child_started',
  'child_finished',
  'migrated',
  'cancel_requested',
  'compensated',
  'escalated',
  'resolved',
  'released',
  'forked',
  'finished',
];
const OUTCOMES: readonly Receipt['outcome'][] = ['succeeded', 'failed', 'not_executed', 'unknown'];
const VIAS: readonly Receipt['via'][] = ['execute', 'reconcile', 'resolve'];

/** What a row says beside its text. */
export interface RowBase {
  runId: string;
  /** Index of the first entry. */
  first: number;
  sequence: number;
  atMs: number;
}

type PackedReceipt = [
  operationId: string,
  attempt: number,
  outcome: number | Receipt['outcome'],
  via: number | Receipt['via'],
  delayMs: number,
  rest: ReceiptRest,
];
type ReceiptRest = Omit<Receipt, 'operationId' | 'attempt' | 'outcome' | 'via' | 'atMs'>;
type PackedEntry = [number | EntryKind, number, number, JsonObject, number?];
type PackedRow = [PackedReceipt[], PackedEntry[]];

/** The text of a row. `receipts` are those that it stores; entries that hold one of them refer to it. */
export function packRow(
  base: Omit<RowBase, 'runId' | 'first'>,
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
  return [strings.pack(operationId), attempt, code(OUTCOMES, outcome), code(VIAS, via), atMs - base.atMs, { ...rest }];
}

function unpackReceipt(base: { atMs: number }, packed: PackedReceipt, strings: UnpackedStrings): Receipt {
  const [operationId, attempt, outcome, via, delay, rest] = packed;
  return {
    operationId: strings.unpack(operationId),
    attempt,
    outcome: named(OUTCOMES, outcome),
    via: named(VIAS, via),
    ...rest,
    atMs: base.atMs + delay,
  };
}

function packEntry(
  base: { sequence: number; atMs: number },
  entry: NewEntry,
  receipts: readonly Receipt[],
  strings: PackedStrings,
): PackedEntry {
  const fields: JsonObject = {};
  let outputOf = -1;
  for (const [name, value] of Object.entries(fieldsOf(entry))) {
    if (value === undefined || name === 'sequence' || name === 'kind' || name === 'atMs') continue;
    const short = LETTER_OF.get(name) ?? `_${name}`;
    if (typeof value === 'string') fields[short] = strings.pack(value);
    else if (!isObject(value)) fields[short] = value;
    else if (name === 'cause') fields[short] = packCause(value, strings);
    else if (name === 'receipt') fields[short] = receiptReference(value, receipts);
    else if (name === 'event') {
      outputOf = receipts.findIndex((receipt) => isObject(value['output']) && receipt.output === value['output']);
      fields[short] = outputOf < 0 ? value : { ...value, output: 0 };
    } else fields[short] = value;
  }
  const packed: PackedEntry = [code(KINDS, entry.kind), entry.sequence - base.sequence, entry.atMs - base.atMs, fields];
  if (outputOf >= 0) packed.push(outputOf);
  return packed;
}

function packCause(cause: JsonObject, strings: PackedStrings): Json {
  const packed: { [field: string]: Json } = {};
  for (const [name, id] of Object.entries(cause)) {
    if (typeof id === 'string') packed[LETTER_OF.get(name) ?? `_${name}`] = strings.pack(id);
  }
  return packed;
}

/** A number in the place of a receipt that this row stores: the same object, as the runtime hands it over. */
function receiptReference(value: JsonObject, receipts: readonly unknown[]): Json {
  const place = receipts.indexOf(value);
  return place < 0 ? value : place;
}

/** The fields of an entry are strict JSON; their declared type also admits the interfaces of the records. */
function fieldsOf(entry: NewEntry): { [field: string]: Json | undefined };
function fieldsOf(entry: unknown): unknown {
  return entry;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unpackEntry(
  base: RowBase,
  packed: PackedEntry,
  place: number,
  receipts: readonly Receipt[],
  strings: UnpackedStrings,
): LedgerEntry {
  const [kind, steps, delay, fields, outputOf] = packed;
  const entry: LedgerEntry = {
    runId: base.runId,
    index: base.first + place,
    sequence: base.sequence + steps,
    kind: named(KINDS, kind),
    atMs: base.atMs + delay,
  };
  for (const [short, value] of Object.entries(fields)) {
    const name = short.startsWith('_') ? short.slice(1) : known(NAME_OF.get(short));
    if (typeof value === 'string') entry[name] = strings.unpack(value);
    else if (name === 'cause' && isObject(value)) entry.cause = unpackCause(value, strings);
    else if (name === 'receipt' && typeof value === 'number') entry[name] = known(receipts[value]);
    else if (name === 'event' && outputOf !== undefined && isObject(value)) {
      entry[name] = { ...value, output: known(receipts[outputOf]).output };
    } else entry[name] = value;
  }
  return entry;
}

function unpackCause(packed: JsonObject, strings: UnpackedStrings): EntryCause {
  const pairs = Object.entries(packed).map(([short, id]) => [
    short.startsWith('_') ? short.slice(1) : known(NAME_OF.get(short)),
    typeof id === 'string' ? strings.unpack(id) : id,
  ]);
  const cause: EntryCause = Object.fromEntries(pairs);
  return cause;
}

function code<T extends string>(names: readonly T[], name: T): number | T {
  const place = names.indexOf(name);
  return place < 0 ? name : place;
}

function named<T extends string>(names: readonly T[], packed: number | T): T {
  return typeof packed === 'number' ? known(names[packed]) : packed;
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('the ledger row was not written by this version or is damaged');
  return value;
}
