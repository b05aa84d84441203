/** What every store refuses before it writes anything: malformed ids, impossible commits, too much at once. */
import { PawlError } from '../errors.ts';
import type { Commit, IncomingEvent, NewEntry, RecordText } from '../records.ts';
import { LIMITS, type ListFilter } from './store.ts';

const ID = /^[A-Za-z0-9._:-]{1,200}$/;
/** Ids that pawl derives from others (`receipt:<operationId>:…`) may be longer than what they are made of. */
const DERIVED_ID = /^[A-Za-z0-9._:-]{1,300}$/;

/** @throws INVALID_ID when `value` is not 1 to 200 characters of `A-Za-z0-9._:-`. */
export function checkId(what: string, value: string): void {
  if (typeof value === 'string' && ID.test(value)) return;
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : typeof value;
  throw new PawlError('INVALID_ID', `${what} ${shown} was refused: use 1 to 200 characters of A-Z a-z 0-9 . _ : -`, {
    details: { what },
  });
}

/**
 * Checks what needs no stored state.
 * @throws INVALID_ID, INVALID_ARGUMENT, RECORD_TOO_LARGE, ENTRY_TOO_LARGE
 */
export function checkCommit(commit: Commit): void {
  checkId('runId', commit.runId);
  checkId('commitId', commit.commitId);
  checkId('agent', commit.summary.agent);
  checkId('tenant', commit.summary.tenant);
  for (const key of commit.keys) {
    checkId('keyDigest', key.keyDigest);
    checkId('operationId', key.operationId);
    checkId('inputDigest', key.inputDigest);
  }
  for (const receipt of commit.receipts) checkId('operationId', receipt.operationId);
  for (const attempt of commit.attempts) checkId('operationId', attempt.operationId);
  for (const closed of commit.closes) {
    checkId('operationId', closed.operationId);
    checkId('inputDigest', closed.inputDigest);
  }
  for (const { eventId } of commit.verdicts) if (!DERIVED_ID.test(eventId)) checkId('eventId', eventId);
  if (commit.sequence < commit.expectedSequence) refuseCommit(commit, 'sequence', commit.expectedSequence);
  if (commit.position < commit.expectedPosition) refuseCommit(commit, 'position', commit.expectedPosition);
  checkOutcomes(commit);
  checkEntryOrder(commit);
  checkRecordSize(commit.runId, commit.record);
}

/** @throws INVALID_ARGUMENT when the commit consumes more than the inbox holds. */
export function checkPosition(commit: Commit, lastPosition: number): void {
  if (commit.position > lastPosition) refuseCommit(commit, 'position', lastPosition);
}

/** @throws INVALID_ARGUMENT when a first commit is a patch. */
export function checkFirstCommit(commit: Commit): void {
  if ('full' in commit.record) return;
  throw new PawlError(
    'INVALID_ARGUMENT',
    `The first commit of run ${commit.runId} carries a patch; send the full record.`,
  );
}

function refuseCommit(commit: Commit, field: 'sequence' | 'position', bound: number): never {
  throw new PawlError(
    'INVALID_ARGUMENT',
    `Commit ${commit.commitId} of run ${commit.runId} was refused: ${field} ${commit[field]} does not fit ${bound}.`,
    { details: { runId: commit.runId, commitId: commit.commitId, [field]: commit[field], bound } },
  );
}

/** Two terminal outcomes of one operation in one commit cannot both be facts. */
function checkOutcomes(commit: Commit): void {
  if (commit.receipts.length < 2) return;
  const outcomes = new Map<string, string>();
  for (const { operationId, outcome } of commit.receipts) {
    if (outcome !== 'succeeded' && outcome !== 'failed') continue;
    const other = outcomes.get(operationId) ?? outcome;
    if (other !== outcome) {
      throw new PawlError(
        'INVALID_ARGUMENT',
        `Commit ${commit.commitId} was refused: it carries both ${other} and ${outcome} for operation ${operationId}.`,
        { details: { operationId, outcomes: [other, outcome] } },
      );
    }
    outcomes.set(operationId, outcome);
  }
}

/** Sequences never fall within a commit and stay between the expected and the new one, so a ledger is in order. */
function checkEntryOrder(commit: Commit): void {
  let previous = commit.expectedSequence;
  for (const entry of commit.entries) {
    if (entry.sequence >= previous && entry.sequence <= commit.sequence) {
      previous = entry.sequence;
      continue;
    }
    throw new PawlError(
      'INVALID_ARGUMENT',
      `Commit ${commit.commitId} of run ${commit.runId} was refused: its entry ${entry.kind} has sequence ` +
        `${entry.sequence}, allowed here are ${previous} to ${commit.sequence}.`,
      { details: { runId: commit.runId, sequence: entry.sequence, from: previous, to: commit.sequence } },
    );
  }
}

function checkRecordSize(runId: string, record: RecordText): void {
  const bytes = byteLength('full' in record ? record.full : record.patch, LIMITS.recordBytes);
  if (bytes <= LIMITS.recordBytes) return;
  throw new PawlError(
    'RECORD_TOO_LARGE',
    `The record of run ${runId} was refused: ${bytes} bytes, ${LIMITS.recordBytes} are allowed. Move large values out of the context.`,
    { details: { runId, bytes, limit: LIMITS.recordBytes } },
  );
}

/**
 * Checks each entry beside the event, output and receipt it holds; `textBytes` is the size of all of them together,
 * which spares the look at each when it is small.
 * @throws ENTRY_TOO_LARGE
 */
export function checkEntrySizes(runId: string, entries: readonly NewEntry[], textBytes: number): void {
  if (textBytes <= LIMITS.entryBytes) return;
  for (const entry of entries) {
    const bytes = Buffer.byteLength(
      JSON.stringify({ ...entry, event: undefined, output: undefined, receipt: undefined }),
    );
    if (bytes <= LIMITS.entryBytes) continue;
    throw new PawlError(
      'ENTRY_TOO_LARGE',
      `A ledger entry ${entry.kind} of run ${runId} was refused: ${bytes} bytes beside its event, ${LIMITS.entryBytes} are allowed.`,
      { details: { runId, kind: entry.kind, sequence: entry.sequence, bytes, limit: LIMITS.entryBytes } },
    );
  }
}

/**
 * Checks the ids and the size of an event; returns its text.
 * @throws INVALID_ID, EVENT_TOO_LARGE
 */
export function checkEvent(runId: string, event: IncomingEvent): string {
  checkId('runId', runId);
  checkId('eventId', event.eventId);
  const text = JSON.stringify(event);
  const bytes = byteLength(text, LIMITS.eventBytes);
  if (bytes <= LIMITS.eventBytes) return text;
  throw new PawlError(
    'EVENT_TOO_LARGE',
    `Event ${event.eventId} for run ${runId} was refused: ${bytes} bytes, ${LIMITS.eventBytes} are allowed. ` +
      'Put large data into an artifact and send its digest.',
    { details: { runId, eventId: event.eventId, bytes, limit: LIMITS.eventBytes } },
  );
}

/** @throws INBOX_FULL */
export function checkInboxRoom(runId: string, eventId: string, waiting: number): void {
  if (waiting < LIMITS.inboxItems) return;
  throw new PawlError(
    'INBOX_FULL',
    `Event ${eventId} for run ${runId} was refused: ${waiting} items wait in its inbox, ${LIMITS.inboxItems} are allowed. Try again later.`,
    { details: { runId, eventId, waiting, limit: LIMITS.inboxItems } },
  );
}

/** The size of a page of `list`, 1 to 1000, and where it starts. @throws INVALID_ARGUMENT */
export function checkListFilter(filter: ListFilter): { limit: number; before: number } {
  const limit = filter.limit ?? 100;
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
    throw new PawlError('INVALID_ARGUMENT', `limit ${limit} was refused: use 1 to 1000.`);
  }
  if (filter.cursor === undefined) return { limit, before: Number.MAX_SAFE_INTEGER };
  const before = Number(filter.cursor);
  if (!Number.isSafeInteger(before)) {
    throw new PawlError(
      'INVALID_ARGUMENT',
      `cursor ${JSON.stringify(filter.cursor)} was refused: pass one that list() returned.`,
    );
  }
  return { limit, before };
}

/** Exact only where it matters: a text whose length cannot exceed the limit in UTF-8 is not measured. */
function byteLength(text: string, limit: number): number {
  return text.length * 3 <= limit ? text.length : Buffer.byteLength(text);
}
