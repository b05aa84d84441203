/** Colour, only where a person reads it: on a terminal, unless NO_COLOR says no. */
import type { Io } from './io.ts';

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export type Paint = (colour: Colour, text: string) => string;

const CODES: Record<Colour, [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export function paintFor(io: Io, stream: 'out' | 'err' = 'out'): Paint {
  const { NO_COLOR: noColour, TERM: terminal } = io.env;
  const isTerminal = stream === 'out' ? io.outIsTerminal : io.errIsTerminal;
  if (!isTerminal || (noColour !== undefined && noColour !== '') || terminal === 'dumb') return (_colour, text) => text;
  return (colour, text) => {
    const [on, off] = CODES[colour];
    return text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`;
  };
}
