/** Ids that enter from outside. */
import { PawlError } from '../errors.ts';

const ID = /^[A-Za-z0-9._:-]{1,200}$/;

/** @throws INVALID_ID */
export function checkId(what: string, id: unknown): string {
  if (typeof id === 'string' && ID.test(id)) return id;
  const shown = typeof id === 'string' ? `'${id.slice(0, 60)}'` : typeof id;
  throw new PawlError('INVALID_ID', `${what} ${shown} is not 1 to 200 characters of A-Z a-z 0-9 . _ : -`, {
    details: { what },
  });
}
