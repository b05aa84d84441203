/** One run as the memory store keeps it: texts, numbers and maps of texts, never an object that a caller holds. */
import type {
  Commit,
  CommitResult,
  IncomingEvent,
  InboxEvent,
  LedgerEntry,
  NewEntry,
  OperationKey,
  Receipt,
  RunSummary,
  StoredOperation,
  StoredVerdict,
} from '../../records.ts';
import { unreadableEntry } from '../door-entries.ts';
import { checkEntrySizes, checkPosition } from '../store-checks.ts';
import { digestAfter, rebuildRecord } from '../record-text.ts';
import { closedOf, inboxEventOf, keyOf, receiptOf, summaryOf, verdictOf } from '../stored-text.ts';
import { LIMITS, type StoredRun } from '../store.ts';

export class MemoryRun {
  readonly runId: string;
  /** Order of creation; the cursor of `list`. */
  readonly number: number;
  fullText = '';
  patches: string[] = [];
  recordDigest = '';
  /** Set by `markUnreadable`, cleared by a claim that can read the record again. */
  isMarked = false;
  sequence = 0;
  fence = 0;
  lease: { workerId: string; untilMs: number } | null = null;
  commitId = '';
  position = 0;
  lastPosition = 0;
  isClosed = false;
  /** While free. */
  freeDueAtMs: number | null = null;
  summary = '';
  /** Unconsumed items. */
  inbox: { position: number; text: string }[] = [];
  /** Every event id ever seen; the verdict's text once there is one. */
  readonly events = new Map<string, string | null>();
  /** The latest operation of each business key. */
  readonly operationByKey = new Map<string, string>();
  readonly keys = new Map<string, string>();
  readonly closedOperations = new Map<string, string>();
  /** Terminal ones by operationId, `not_executed` by operationId#attempt. */
  readonly receipts = new Map<string, string>();
  readonly ledger: string[] = [];

  constructor(runId: string, number: number) {
    this.runId = runId;
    this.number = number;
  }

  /** The due index: the lease end while leased, else what the last release said. */
  dueAtMs(): number | null {
    if (this.isClosed || this.isMarked) return null;
    return this.lease ? this.lease.untilMs : this.freeDueAtMs;
  }

  isLeased(nowMs: number): boolean {
    return this.lease !== null && this.lease.untilMs > nowMs;
  }

  holdsLease(fence: number): boolean {
    return this.lease !== null && this.fence === fence;
  }

  /** Frees the run; due now when its inbox holds more. */
  free(dueAtMs: number | null, nowMs: number): void {
    this.lease = null;
    this.freeDueAtMs = dueAtMs;
    if (this.lastPosition > this.position) this.wake(nowMs);
  }

  wake(nowMs: number): void {
    this.freeDueAtMs = Math.min(this.freeDueAtMs ?? nowMs, nowMs);
  }

  readSummary(): RunSummary {
    return summaryOf(this.summary);
  }

  rebuild(): ReturnType<typeof rebuildRecord> {
    return rebuildRecord(this.fullText, this.patches, this.recordDigest);
  }

  stored(nowMs: number): StoredRun {
    const rebuilt = this.rebuild();
    return {
      runId: this.runId,
      record: 'record' in rebuilt ? rebuilt.record : null,
      unreadable: 'unreadable' in rebuilt ? rebuilt.unreadable : null,
      facts: {
        sequence: this.sequence,
        fence: this.fence,
        lease: this.lease && { ...this.lease },
        commitId: this.commitId,
        position: this.position,
        closed: this.isClosed,
        receipts: this.openReceipts(),
      },
      summary: this.readSummary(),
      recordDigest: this.recordDigest,
      waiting: this.lastPosition - this.position,
      nowMs,
    };
  }

  inboxAfter(position: number): InboxEvent[] {
    const items = this.inbox.filter((item) => item.position > position).slice(0, LIMITS.claimInboxItems);
    return items.map((item) => inboxEventOf(item.text));
  }

  /** Adds an item unless its event id was seen before. */
  enqueue(event: IncomingEvent, nowMs: number): void {
    if (this.events.has(event.eventId)) return;
    const item: InboxEvent = { ...event, position: ++this.lastPosition, atMs: nowMs };
    this.inbox.push({ position: item.position, text: JSON.stringify(item) });
    this.events.set(event.eventId, null);
    if (!this.isLeased(nowMs)) this.wake(nowMs);
  }

  append(entry: NewEntry): void {
    const numbered: LedgerEntry = { ...entry, runId: this.runId, index: this.ledger.length };
    this.ledger.push(JSON.stringify(numbered));
  }

  verdict(eventId: string): StoredVerdict | null {
    const text = this.events.get(eventId) ?? null;
    return text === null ? null : verdictOf(text);
  }

  terminalReceipt(operationId: string): Receipt | null {
    const text = this.receipts.get(operationId);
    return text === undefined ? null : receiptOf(text);
  }

  addReceipt(receipt: Receipt): void {
    if (receipt.outcome === 'unknown') return;
    const name = receiptName(receipt);
    if (!this.receipts.has(name)) this.receipts.set(name, JSON.stringify(receipt));
  }

  storedOperation(operationId: string): StoredOperation {
    const key = this.keys.get(operationId);
    const closed = this.closedOperations.get(operationId);
    return {
      operationId,
      key: key === undefined ? null : keyOf(key),
      closed: closed === undefined ? null : closedOf(closed),
      receipt: this.terminalReceipt(operationId),
    };
  }

  /** Receipts of operations without a closed row. */
  private openReceipts(): Record<string, Receipt> {
    const open = [...this.receipts].filter(([name]) => !this.closedOperations.has(name.replace(/#.*/, '')));
    return Object.fromEntries(open.map(([name, text]) => [name, receiptOf(text)]));
  }

  /** The first fact that a commit contradicts: keys, then receipts, then attempts. */
  findConflict(commit: Commit, nowMs: number): CommitResult | null {
    const conflict = (
      on: 'key' | 'receipt' | 'attempt',
      operationId: string,
      storedId = operationId,
    ): CommitResult => ({
      kind: 'conflict',
      on,
      operationId,
      stored: this.storedOperation(storedId),
      inbox: this.inboxAfter(commit.expectedPosition),
      nowMs,
    });
    for (const key of commit.keys) {
      const storedId = this.operationByKey.get(key.keyDigest);
      if (storedId !== undefined && !this.yields(storedId, key)) return conflict('key', key.operationId, storedId);
    }
    for (const { operationId, outcome } of commit.receipts) {
      if (outcome !== 'succeeded' && outcome !== 'failed') continue;
      const stored = this.terminalReceipt(operationId);
      if (stored && stored.outcome !== outcome) return conflict('receipt', operationId);
    }
    for (const { operationId } of commit.attempts) {
      if (this.terminalReceipt(operationId)) return conflict('attempt', operationId);
    }
    return null;
  }

  /** Whether a key may be taken from the operation that has it: by a later generation, or by reopening the same one. */
  private yields(storedId: string, key: OperationKey): boolean {
    const stored = this.storedOperation(storedId);
    if (stored.key !== null && stored.key.generation < key.generation) return true;
    if (storedId !== key.operationId || stored.key?.generation !== key.generation) return false;
    if (stored.closed === null) return false;
    if (key.attempts !== undefined && key.attempts !== stored.closed.attempts) return false;
    const reopens = stored.closed.status === 'not_executed' || stored.closed.status === 'withdrawn';
    return reopens && stored.receipt?.outcome !== 'succeeded';
  }

  /** Writes all of a commit that passed every check. Throws before the first change or not at all. */
  apply(commit: Commit, nowMs: number): void {
    checkEntrySizes(this.runId, commit.entries, Buffer.byteLength(JSON.stringify(commit.entries)));
    checkPosition(commit, this.lastPosition);
    if ('full' in commit.record) {
      this.fullText = commit.record.full;
      this.patches = [];
    } else this.patches.push(commit.record.patch);
    this.recordDigest = digestAfter(commit.record);
    this.summary = JSON.stringify(commit.summary);
    for (const { attempts: _known, ...key } of commit.keys) {
      this.operationByKey.set(key.keyDigest, key.operationId);
      this.keys.set(key.operationId, JSON.stringify(key));
      this.closedOperations.delete(key.operationId);
    }
    for (const receipt of commit.receipts) this.addReceipt(receipt);
    for (const closed of commit.closes) this.closedOperations.set(closed.operationId, JSON.stringify(closed));
    for (const { eventId, verdict } of commit.verdicts) this.events.set(eventId, JSON.stringify(verdict));
    for (const entry of commit.entries) this.append(entry);
    this.sequence = commit.sequence;
    this.position = commit.position;
    this.inbox = this.inbox.filter((item) => item.position > commit.position);
    this.commitId = commit.commitId;
    if (commit.close && this.lastPosition === this.position) this.isClosed = true;
    if ('keepMs' in commit.lease && this.lease) this.lease.untilMs = nowMs + commit.lease.keepMs;
    else this.free('keepMs' in commit.lease ? nowMs : commit.lease.releaseDueAtMs, nowMs);
  }

  markUnreadable(reason: string, nowMs: number): void {
    const summary: RunSummary = { ...this.readSummary(), status: 'needs_human', waitingFor: ['record_unreadable'] };
    this.summary = JSON.stringify(summary);
    this.isMarked = true;
    this.lease = null;
    this.freeDueAtMs = null;
    this.append(unreadableEntry(reason, this.sequence, nowMs));
  }
}

function receiptName(receipt: Receipt): string {
  return receipt.outcome === 'not_executed' ? `${receipt.operationId}#${receipt.attempt}` : receipt.operationId;
}
