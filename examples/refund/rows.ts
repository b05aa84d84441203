/** Reads a vendor-refund CSV: valid rows, and bad rows with line and reason. A bad row stops nothing. */
import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import { isCurrency, parseAmount } from './money.ts';

export const COLUMNS = ['row', 'vendor', 'email', 'order', 'amount', 'currency', 'reason'] as const;

/** What a run is started with. */
export const refundRequest = z.object({
  orderId: z.string(),
  vendor: z.string(),
  email: z.string(),
  amountCents: z.int().positive(),
  currency: z.string(),
  reason: z.string(),
});
export type RefundRequest = z.infer<typeof refundRequest>;

export interface RefundRow {
  line: number;
  runId: string;
  request: RefundRequest;
  /** The line that asks for the same refund already; starting it again returns the same run. */
  repeats: number | null;
}

export interface BadRow {
  line: number;
  reason: string;
  text: string;
}

export interface RowFile {
  /** Data rows read, good and bad. */
  read: number;
  rows: RefundRow[];
  bad: BadRow[];
}

/** An order is refunded once, so its id alone names the run: the same row in another file is the same run. */
export function runIdOf(orderId: string): string {
  return `refund:${orderId}`;
}

export function readRows(file: string, limit = Number.POSITIVE_INFINITY): RowFile {
  return parseRows(readFileSync(file, 'utf8'), limit);
}

/**
 * A record is one line, so that a quote left open spoils its own row and not the rest of the file.
 * Blank lines are skipped; `limit` counts data rows.
 */
export function parseRows(text: string, limit = Number.POSITIVE_INFINITY): RowFile {
  const file: RowFile = { read: 0, rows: [], bad: [] };
  const seen = new Map<string, RefundRow>();
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const header = lines[0]?.trim();
  if (header !== COLUMNS.join(',')) {
    throw new TypeError(`The first line is '${header ?? ''}', expected '${COLUMNS.join(',')}'.`);
  }
  for (const [index, source] of lines.entries()) {
    if (index === 0 || source.trim() === '') continue;
    if (file.read >= limit) break;
    file.read += 1;
    const line = index + 1;
    const parsed = parseLine(source);
    const row = typeof parsed === 'string' ? parsed : sameRefund(parsed, line, seen);
    if (typeof row === 'string') file.bad.push({ line, reason: row, text: source });
    else file.rows.push(row);
  }
  return file;
}

/** A request, or why there is none. */
function parseLine(source: string): RefundRequest | string {
  const cells = parseCells(source);
  if (typeof cells === 'string') return cells;
  if (cells.length !== COLUMNS.length) return `${cells.length} fields, expected ${COLUMNS.length}`;
  const [, vendor = '', email = '', orderId = '', amount = '', currency = '', reason = ''] = cells;
  const missing = COLUMNS.find((_, at) => cells[at] === '');
  if (missing) return `${missing} is missing`;
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(orderId)) return `order '${orderId}' has characters that no order has`;
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(email)) return `email '${email}' is not an address`;
  if (!isCurrency(currency)) return `currency '${currency}' is not one we pay in`;
  const money = parseAmount(amount, currency);
  if (money.kind === 'bad') return money.reason;
  return { orderId, vendor, email, amountCents: money.amountCents, currency, reason };
}

function parseCells(source: string): string[] | string {
  try {
    return parse(source, { trim: true })[0] ?? [];
  } catch (error) {
    return `broken quoting (${error instanceof Error ? error.message.split(':')[0] : 'unreadable'})`;
  }
}

/** Two rows for one order are one refund if they say the same, else the later one is bad: an order is paid back once. */
function sameRefund(request: RefundRequest, line: number, seen: Map<string, RefundRow>): RefundRow | string {
  const runId = runIdOf(request.orderId);
  const first = seen.get(runId);
  if (!first) {
    const row = { line, runId, request, repeats: null };
    seen.set(runId, row);
    return row;
  }
  const differs = refundRequest.keyof().options.find((key) => request[key] !== first.request[key]);
  if (differs)
    return `order ${request.orderId} is on line ${first.line} already, with another ${differs === 'amountCents' ? 'amount' : differs}`;
  return { line, runId, request, repeats: first.line };
}
