/** Where a demo keeps its files: a new temporary folder, or beside the store that it is given. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PawlError } from '../../src/index.ts';

export interface DemoPlace {
  input: string;
  storeUrl: string;
  /** The servers' own databases: they belong to the store, so that a demo can go on where another ended. */
  paymentFile: string;
  mailFile: string;
  killLog: string;
}

export function placeDemo(options: { input?: string; store?: string }): DemoPlace {
  const input = options.input === undefined ? shippedRows() : resolve(options.input);
  const base =
    options.store === undefined ? join(mkdtempSync(join(tmpdir(), 'pawl-demo-')), 'pawl') : baseOf(options.store);
  return {
    input,
    storeUrl: options.store ?? `sqlite:${base}.db`,
    paymentFile: `${base}.payments.db`,
    mailFile: `${base}.mails.db`,
    killLog: `${base}.kills-${Date.now()}.jsonl`,
  };
}

/** The file lies beside the sources, also when this runs from dist. */
function shippedRows(): string {
  const places = ['./vendor-refunds.csv', '../../../examples/refund/vendor-refunds.csv'];
  const found = places.map((place) => fileURLToPath(new URL(place, import.meta.url))).find((path) => existsSync(path));
  if (found === undefined) {
    throw new PawlError('DEMO_NOT_PACKAGED', 'The rows of the demo are not here; run it in a clone, or give --input.');
  }
  return found;
}

function baseOf(store: string): string {
  if (store.startsWith('memory:')) {
    throw new PawlError(
      'STORE_URL_INVALID',
      'The demo works in several processes; give it a store that they can share.',
    );
  }
  const base = store.startsWith('sqlite:')
    ? resolve(store.slice('sqlite:'.length)).replace(/\.db$/, '')
    : resolve('.pawl', `demo-${createHash('sha256').update(store).digest('hex').slice(0, 8)}`);
  mkdirSync(dirname(base), { recursive: true });
  return base;
}
