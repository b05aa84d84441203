/** The runtime's log on stderr, one line each: time, level, message, fields. */
import type { Logger } from '../runtime/logger.ts';
import type { Io } from './io.ts';
import { paintFor, type Colour } from './paint.ts';
import { printable } from './render-table.ts';

/** With `quiet`, warnings and errors only. */
export function stderrLogger(io: Io, quiet: boolean): Logger {
  const paint = paintFor(io, 'err');
  const write = (level: string, colour: Colour, message: string, fields: object = {}): void => {
    const shown = Object.entries(fields).map(([name, value]) => `${name}=${textOf(value)}`);
    const time = new Date().toISOString().slice(11, 23);
    io.err(`${paint('dim', time)} ${paint(colour, level)} ${printable([message, ...shown].join(' '))}\n`);
  };
  return {
    info: (message, fields) => {
      if (!quiet) write('info ', 'dim', message, fields);
    },
    warn: (message, fields) => write('warn ', 'yellow', message, fields),
    error: (message, fields) => write('error', 'red', message, fields),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' && /^[\w.:-]+$/.test(value) ? value : JSON.stringify(value);
}
