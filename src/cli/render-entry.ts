/** One ledger entry on one line: index, sequence, time, kind, and what it says. */
import type { Json, LedgerEntry } from '../records.ts';
import type { Colour, Paint } from './paint.ts';
import { printable, shorten } from './render-table.ts';
import { jsonText, stateText, timeText } from './render-value.ts';

export function renderEntry(entry: LedgerEntry, width: number, paint: Paint): string {
  const { index, sequence, atMs, kind } = entry;
  const lead = `${String(index).padStart(4)} ${String(sequence).padStart(4)}  ${timeText(atMs)}  `;
  const text = printable(`${kind.padEnd(16)} ${summaryOf(entry)}`).trimEnd();
  const colour = colourOf(entry);
  const shown = Number.isFinite(width) ? shorten(text, Math.max(20, width - lead.length)) : text;
  return `${paint('dim', lead)}${colour === null ? shown : paint(colour, shown)}\n`;
}

function colourOf({ kind }: LedgerEntry): Colour | null {
  switch (kind) {
    case 'transitioned':
      return 'bold';
    case 'received':
    case 'finished':
      return 'green';
    case 'refused':
    case 'escalated':
    case 'conflict':
      return 'red';
    case 'attempted':
    case 'reconciled':
      return 'yellow';
    default:
      return null;
  }
}

const HEADS = new Set(['runId', 'index', 'sequence', 'kind', 'atMs', 'cause', 'snapshotDigest']);

function summaryOf(entry: LedgerEntry): string {
  const text = (name: string): string => textOf(entry[name]);
  switch (entry.kind) {
    case 'transitioned': {
      const event = entry['event'] as { type?: Json } | undefined;
      const before = (entry['from'] ?? '') as Json;
      const from = before === '' ? '' : `${stateText(before)} → `;
      return `${textOf(event?.type)}: ${from}${stateText((entry['to'] ?? null) as Json)}`;
    }
    case 'intended':
      return `${text('tool')} ${text('operationId')} ${text('input')}`;
    case 'attempted':
      return `${text('operationId')} attempt ${text('attempt')}`;
    case 'received':
      return `${text('operationId')} attempt ${text('attempt')} ${text('outcome')} via ${text('via')}`;
    default:
      return Object.keys(entry)
        .filter((name) => !HEADS.has(name) && entry[name] !== undefined && entry[name] !== null)
        .map((name) => `${name}=${text(name)}`)
        .join(' ');
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : jsonText(value ?? null);
}
