/** SHA-256 as the stores use it: one call per commit, by the one-shot function, which costs half of `createHash`. */
import { hash } from 'node:crypto';

/** SHA-256 of a text (as UTF-8), 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/** The next link of a digest chain: SHA-256 of the previous link and the new text. */
export function chainDigest(previous: string, text: string): string {
  return sha256Hex(previous + text);
}

/** The link that a chain of ledger rows starts from. */
export const EMPTY_CHAIN = '0'.repeat(64);
