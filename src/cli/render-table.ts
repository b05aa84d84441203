/** Aligned columns that fit the terminal: the widest flexible column gives way first. */
import type { Paint, Colour } from './paint.ts';

export interface Column<Row> {
  title: string;
  text(row: Row): string;
  colour?(row: Row): Colour | null;
  /** Shortened down to this width when the table is too wide; others keep theirs. */
  minWidth?: number;
  align?: 'right';
}

const GAP = 2;

export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
  paint: Paint,
): string {
  const cells = rows.map((row) => columns.map((column) => oneLine(column.text(row))));
  const widths = columns.map((column, at) =>
    Math.max(lengthOf(column.title), ...cells.map((line) => lengthOf(line[at] ?? ''))),
  );
  shrink(widths, columns, width - GAP * (columns.length - 1));
  const line = (texts: readonly string[], colourOf: (at: number) => Colour | null): string =>
    texts
      .map((text, at) => {
        const colour = colourOf(at);
        const padded = pad(text, widths[at] ?? 0, columns[at]?.align === 'right', at === texts.length - 1);
        return colour === null ? padded : paint(colour, padded);
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  const head = line(
    columns.map(({ title }) => title),
    () => 'dim',
  );
  const body = rows.map((row, index) => line(cells[index] ?? [], (at) => columns[at]?.colour?.(row) ?? null));
  return [head, ...body].map((text) => `${text}\n`).join('');
}

function shrink(widths: number[], columns: readonly Column<never>[], room: number): void {
  for (let excess = sum(widths) - room; excess > 0; excess = sum(widths) - room) {
    let widest = -1;
    columns.forEach((column, at) => {
      const spare = (widths[at] ?? 0) - (column.minWidth ?? Infinity);
      if (spare > 0 && (widest < 0 || (widths[at] ?? 0) > (widths[widest] ?? 0))) widest = at;
    });
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function pad(text: string, width: number, right: boolean, isLast: boolean): string {
  const cut = shorten(text, width);
  const space = ' '.repeat(Math.max(0, width - lengthOf(cut)));
  if (right) return space + cut;
  return isLast ? cut : cut + space;
}

/** Cuts a text to `width` characters, the last of them an ellipsis. */
export function shorten(text: string, width: number): string {
  const characters = Array.from(text);
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

/** Breaks a text at spaces so that each line fits; `indent` leads all lines but the first. */
export function wrap(text: string, width: number, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && lengthOf(line) + 1 + lengthOf(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${indent}`);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replace(CONTROL, '?');
}

// Stored texts come from outside; they must not steer the terminal.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/** A text that cannot steer the terminal; line breaks stay. */
export function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(CONTROL, '?'))
    .join('\n');
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

function sum(widths: readonly number[]): number {
  return widths.reduce((total, width) => total + width, 0);
}
