/** Draft → Commit. */
import { PawlError } from '../errors.ts';
import { encodeRecord, type EncodedRecord, type WrittenRecord } from '../persistence/record-text.ts';
import { LIMITS } from '../persistence/store.ts';
import type { Commit, Durability } from '../records.ts';
import type { Draft } from './draft.ts';
import { summaryOf } from './finish.ts';

export interface CommitContext {
  commitId: string;
  after: string;
  durability: Durability;
  lease: Commit['lease'];
  /** The record as the store last got it; null for a first commit or a full one. */
  previous: WrittenRecord | null;
}

/** Room that a step may not use: a run that is full must still be able to say so, and to wait. */
const RESERVED_BYTES = 64 * 1024;

/** A record that may be too large is written whole, so that its size is known. @throws RECORD_TOO_LARGE */
function encodeWithin(draft: Draft, { previous, lease }: CommitContext): EncodedRecord {
  const { record } = draft;
  const limit = LIMITS.recordBytes - RESERVED_BYTES;
  let encoded = encodeRecord(previous, record, 'releaseDueAtMs' in lease);
  if (encoded.fullBytes + encoded.patchesBytes <= limit) return encoded;
  if ('patch' in encoded.text) encoded = encodeRecord(null, record, true);
  if (encoded.fullBytes <= limit || draft.macrosteps === 0) return encoded;
  throw new PawlError(
    'RECORD_TOO_LARGE',
    `The record of run ${record.runId} would have ${encoded.fullBytes} bytes, ${limit} are allowed. Move large values out of the context.`,
    { details: { runId: record.runId, bytes: encoded.fullBytes, limit } },
  );
}

/** A waiting run is always one readable JSON text: the record is full whenever the lease is given back. */
export function encodeCommit(draft: Draft, context: CommitContext): { commit: Commit; encoded: EncodedRecord } {
  const { record, base } = draft;
  const encoded = encodeWithin(draft, context);
  return {
    encoded,
    commit: {
      runId: record.runId,
      commitId: context.commitId,
      after: context.after,
      fence: base.fence,
      expectedSequence: base.sequence,
      sequence: draft.sequence,
      expectedPosition: base.position,
      position: draft.position,
      record: encoded.text,
      summary: summaryOf(record),
      keys: draft.keys,
      receipts: draft.receipts,
      attempts: draft.attempts,
      closes: draft.closes,
      verdicts: draft.verdicts,
      entries: draft.entries,
      lease: context.lease,
      close: record.finishedAtMs !== null && record.outbox.length === 0,
      durability: context.durability,
    },
  };
}
