/** Draft → Commit. */
import { encodeRecord, type EncodedRecord, type WrittenRecord } from '../persistence/record-text.ts';
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

/** A waiting run is always one readable JSON text: the record is full whenever the lease is given back. */
export function encodeCommit(draft: Draft, context: CommitContext): { commit: Commit; encoded: EncodedRecord } {
  const { record, base } = draft;
  const encoded = encodeRecord(context.previous, record, 'releaseDueAtMs' in context.lease);
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
