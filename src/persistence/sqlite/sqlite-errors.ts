/** What SQLite reports, as the store's own codes. */
import { isPawlError, messageOf, PawlError, type ErrorCode } from '../../errors.ts';

/** Primary result codes of SQLite. */
const CODES: Record<number, { name: string; code: ErrorCode; meaning: string }> = {
  5: { name: 'BUSY', code: 'STORE_BUSY', meaning: 'another process held it too long' },
  6: { name: 'LOCKED', code: 'STORE_BUSY', meaning: 'another connection held it too long' },
  8: { name: 'READONLY', code: 'STORE_READ_ONLY', meaning: 'it cannot be written' },
  10: { name: 'IOERR', code: 'STORE_UNREACHABLE', meaning: 'reading or writing failed' },
  11: { name: 'CORRUPT', code: 'STORE_CORRUPT', meaning: 'the file is damaged' },
  13: { name: 'FULL', code: 'STORE_FULL', meaning: 'there is no space left; nothing was written' },
  14: { name: 'CANTOPEN', code: 'STORE_UNREACHABLE', meaning: 'it cannot be opened' },
  26: { name: 'NOTADB', code: 'STORE_CORRUPT', meaning: 'the file is not a SQLite database' },
};

/** An error of the binding as a PawlError; anything that is not SQLite's comes back as it is. */
export function toStoreError(error: unknown, place: string): unknown {
  if (isPawlError(error)) return error;
  const row = CODES[primaryCode(error) ?? -1];
  if (!row) return error;
  return new PawlError(row.code, `The store ${place} refused: ${row.meaning} (${messageOf(error)}).`, {
    details: { store: place, sqlite: row.name },
    cause: error,
  });
}

export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === 5 || code === 6;
}

/** node:sqlite has `errcode`, libsql `rawCode`, both `SQLITE_…` in `code` or only a number in the message. */
function primaryCode(error: unknown): number | null {
  if (typeof error !== 'object' || error === null) return null;
  const numeric = 'errcode' in error ? error.errcode : 'rawCode' in error ? error.rawCode : null;
  if (typeof numeric === 'number') return numeric & 0xff;
  const name = 'code' in error ? /^SQLITE_([A-Z]+)/.exec(String(error.code))?.[1] : undefined;
  const known = Object.entries(CODES).find(([, row]) => row.name === name);
  if (known) return Number(known[0]);
  const opening = /Unable to open connection to local database .*: (\d+)/.exec(messageOf(error))?.[1];
  return opening === undefined ? null : Number(opening) & 0xff;
}
