/**
 * How a run's record travels and is kept: one full JSON text and the patches after it, bound by a digest chain.
 * The digest of a full text is SHA-256 of the text; that of a patch is SHA-256 of its base's digest and its text.
 */
import { applyPatch, diff, type Patch } from '../patch.ts';
import { messageOf } from '../errors.ts';
import type { Json, RecordText, RunRecord } from '../records.ts';
import { jsonOf } from './stored-text.ts';
import { chainDigest, sha256Hex } from './store-digest.ts';

/** A full text is written at the latest every so many commits. */
export const FULL_EVERY = 50;

/** What was last written of a record: the base of the next patch. */
export interface WrittenRecord {
  record: RunRecord;
  digest: string;
  fullBytes: number;
  /** Since the last full text. */
  patchesBytes: number;
  patchCount: number;
}

export interface EncodedRecord extends WrittenRecord {
  text: RecordText;
}

export function fullDigest(text: string): string {
  return sha256Hex(text);
}

export function patchDigest(baseDigest: string, text: string): string {
  return chainDigest(baseDigest, text);
}

/** Digest of the record after a commit that carries `text`. */
export function digestAfter(text: RecordText): string {
  return 'full' in text ? fullDigest(text.full) : patchDigest(text.baseDigest, text.patch);
}

/**
 * The text for the next commit: a patch against `previous`, or the whole record when there is no previous one, when
 * `forceFull` is set, every `FULL_EVERY` commits and when the patches would outweigh the full text. `next` must share
 * what it did not change with `previous.record`: the cost then follows the change, not the size.
 */
export function encodeRecord(previous: WrittenRecord | null, next: RunRecord, forceFull: boolean): EncodedRecord {
  if (!previous || forceFull || previous.patchCount >= FULL_EVERY - 1) return encodeFull(next);
  // `{}` is the patch that changes nothing.
  const patch = diff(asJson(previous.record), asJson(next)) ?? {};
  const text = JSON.stringify(patch);
  const patchesBytes = previous.patchesBytes + Buffer.byteLength(text);
  if (patchesBytes > previous.fullBytes) return encodeFull(next);
  return {
    text: { patch: text, baseDigest: previous.digest },
    record: next,
    digest: patchDigest(previous.digest, text),
    fullBytes: previous.fullBytes,
    patchesBytes,
    patchCount: previous.patchCount + 1,
  };
}

function encodeFull(record: RunRecord): EncodedRecord {
  const full = JSON.stringify(record);
  return {
    text: { full },
    record,
    digest: fullDigest(full),
    fullBytes: Buffer.byteLength(full),
    patchesBytes: 0,
    patchCount: 0,
  };
}

/**
 * The record that a full text and the patches after it stand for, if the chain of digests ends in `expectedDigest`;
 * otherwise why it cannot be read. Never throws.
 */
export function rebuildRecord(
  full: string,
  patches: readonly string[],
  expectedDigest: string,
): { record: RunRecord } | { unreadable: string } {
  const digest = patches.reduce(patchDigest, fullDigest(full));
  if (digest !== expectedDigest) {
    return { unreadable: `digest mismatch: the stored bytes have ${digest}, the store expects ${expectedDigest}` };
  }
  let value: Json;
  try {
    value = jsonOf(full);
  } catch (error) {
    return { unreadable: `not JSON: ${messageOf(error)}` };
  }
  for (const [index, text] of patches.entries()) {
    try {
      const patch: Patch = JSON.parse(text);
      value = applyPatch(value, patch);
    } catch (error) {
      return { unreadable: `patch ${index + 1} of ${patches.length} cannot be applied: ${messageOf(error)}` };
    }
  }
  return isRunRecord(value) ? { record: value } : { unreadable: describeForeign(value) };
}

function isRunRecord(value: unknown): value is RunRecord {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 1;
}

function describeForeign(value: Json): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not a JSON object';
  return `unknown record format ${JSON.stringify(value['format'] ?? null)}, this version reads 1`;
}

/** A record is strict JSON by construction; its interface type lacks the index signature. */
function asJson(record: RunRecord): Json;
function asJson(record: unknown): unknown {
  return record;
}
