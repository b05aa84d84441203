/** What a command answers on stdout: one JSON document, or text. */
import type { Invocation } from './command.ts';
import { paintFor, type Paint } from './paint.ts';

/** Under `--json` the document, indented on a terminal only; else what `render` makes of it. */
export function answer<T>(invocation: Invocation, document: T, render: (document: T, paint: Paint) => string): void {
  const { io, isJson } = invocation;
  if (isJson) io.out(`${JSON.stringify(document, null, io.outIsTerminal ? 2 : 0)}\n`);
  else io.out(render(document, paintFor(io)));
}

/** A line for the person at the terminal, on stderr; not with `--quiet` or `--json`. */
export function notice({ io, isQuiet, isJson }: Invocation, text: string): void {
  if (!isQuiet && !isJson) io.err(`${text}\n`);
}

/** Width that text is laid out for. */
export function widthOf({ io }: Pick<Invocation, 'io'>): number {
  return Math.max(60, io.columns);
}
