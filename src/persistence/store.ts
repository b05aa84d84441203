/** The Store port: where truth lives. Every method is atomic; every time is the store's own clock. */
import type {
  Commit,
  CommitResult,
  IncomingEvent,
  InboxEvent,
  LedgerEntry,
  Receipt,
  RunFacts,
  RunRecord,
  RunStatus,
  RunSummary,
  StoredVerdict,
} from '../records.ts';

/** A stored run. `record` is null when its bytes cannot be read; `unreadable` then says why and the bytes are kept. */
export interface StoredRun {
  runId: string;
  record: RunRecord | null;
  unreadable: string | null;
  facts: RunFacts;
  summary: RunSummary;
  /** Digest a patch must name as its base. */
  recordDigest: string;
  /** Items not yet consumed. */
  waiting: number;
  nowMs: number;
}

export interface Claim extends StoredRun {
  lease: Lease;
  /** Unconsumed items in position order, the first 100. */
  inbox: InboxEvent[];
}

export interface Lease {
  runId: string;
  workerId: string;
  fence: number;
  /** Store time. */
  untilMs: number;
}

export type AcceptResult =
  | { kind: 'accepted'; position: number }
  | { kind: 'duplicate'; verdict: StoredVerdict | null }
  /** The event was refused: at the door (`refused` was given), or because the run is closed. */
  | { kind: 'final'; verdict: StoredVerdict }
  | { kind: 'missing' };

export interface ListFilter {
  agent?: string;
  status?: RunStatus;
  /** A dotted path of the state value. */
  state?: string;
  tenant?: string;
  labels?: Record<string, string>;
  /** Runs that need a human, or wait for something that begins with `blocked` (an operation of another owner). */
  blocked?: boolean;
  /** 1 to 1000, default 100. */
  limit?: number;
  cursor?: string;
}

export interface DueRun {
  runId: string;
  agent: string;
  agentVersion: number;
  dueAtMs: number;
}

export interface ReservationRequest {
  tenant: string;
  /** Digest of the business key. */
  key: string;
  runId: string;
  /** The sequence at which the run intended it. */
  intent: number;
}

export interface ReservationAnswer {
  owner: string;
  intent: number;
  refused?: true;
  receipt?: Receipt;
}

/** What `audit` found wrong in the bytes of one run: a ledger entry, the record or a receipt. */
export interface AuditProblem {
  /** The sequence the damage is seen at. */
  sequence: number;
  what: string;
}

export interface Store {
  /** `sqlite`, `memory`, …; for messages. */
  readonly kind: string;
  /**
   * Stores a new run with its first commit (fence 0, `after` empty). `exists` returns the stored run and changes
   * nothing. The run is free afterwards and due as the commit's `releaseDueAtMs` says.
   */
  create(commit: Commit): Promise<{ kind: 'created' | 'exists'; run: StoredRun }>;
  load(runId: string): Promise<StoredRun | null>;
  /**
   * Appends an event to the inbox, once per `eventId`. With `refused` nothing enters the inbox: one ledger entry and the
   * verdict are stored. A closed run refuses with `run_final`. The run becomes due now unless it is leased.
   * @throws EVENT_TOO_LARGE, INBOX_FULL before anything is written
   */
  accept(
    runId: string,
    event: IncomingEvent,
    refused?: { reason: string; state: StoredVerdict['state'] },
  ): Promise<AcceptResult>;
  verdict(runId: string, eventId: string): Promise<StoredVerdict | null>;
  /**
   * Takes due runs without a live lease, of these agents at these versions only, oldest due time first; raises each
   * fence. With `runIds`, only these, due or not, if free and not closed. An unreadable run is returned with
   * `record: null`; see `markUnreadable`.
   */
  claim(request: {
    workerId: string;
    leaseMs: number;
    limit: number;
    agents: Record<string, number[]>;
    runIds?: string[];
  }): Promise<Claim[]>;
  /**
   * All or nothing. Checks in this order: exists, fence, commit id (`repeated`), `after`, sequence and position, then
   * facts: keys, receipts, attempts (`conflict`). `record.baseDigest` that differs is `stale_sequence`; a new commit
   * after the lease was given back is `stale_fence`. A conflict's `operationId` is the commit's; `stored.operationId` is
   * another one when its key belongs to an earlier operation.
   * @throws RECORD_TOO_LARGE, ENTRY_TOO_LARGE, STORE_FULL, STORE_READ_ONLY, STORE_BUSY; then nothing was written
   */
  commit(commit: Commit): Promise<CommitResult>;
  /**
   * Stores a receipt as a fact, whoever holds the lease, and as an inbox item, so that the run is due. Outcomes are
   * compared, not bytes: the first stored output stands. `unknown` is never stored and answers `same`.
   */
  receive(runId: string, receipt: Receipt): Promise<'stored' | 'same' | 'conflict' | 'missing'>;
  renew(
    lease: Lease,
    leaseMs: number,
    afterPosition: number,
  ): Promise<{ kind: 'ok'; inbox: InboxEvent[]; nowMs: number; leaseUntilMs: number } | { kind: 'stale_fence' }>;
  /** Gives the lease back without a commit; the due time is "now" when the inbox holds more. */
  release(lease: Lease, to: { dueAtMs: number | null }): Promise<'ok' | 'stale_fence'>;
  /** The run is `needs_human: record_unreadable` beside its bytes and no longer due. Needs the lease; frees it. */
  markUnreadable(lease: Lease, reason: string): Promise<'ok' | 'stale_fence'>;
  /** Entries in index order. */
  read(runId: string, from?: { fromSequence?: number; fromIndex?: number; limit?: number }): AsyncIterable<LedgerEntry>;
  /** Newest first by creation. */
  list(filter: ListFilter): Promise<{ runs: StoredRun[]; cursor: string | null }>;
  /** The runs with the earliest due times, which may lie ahead; a leased run is due at its lease end. */
  due(limit: number): Promise<DueRun[]>;
  /** All stored receipts of a run with a terminal outcome, for verify. */
  receipts(runId: string): AsyncIterable<Receipt>;
  receipt(runId: string, operationId: string): Promise<Receipt | null>;
  /** Checks the digests the store keeps over its own bytes of a run. Empty when all hold. */
  audit(runId: string): Promise<AuditProblem[]>;
  erase(runId: string): Promise<boolean>;
  /**
   * Reserves a business key in tenant scope. An intent at or below the run's highest settled one is `refused`; a key
   * that another run owns stays with it. `owner` is empty when nobody owns the key; `receipt` is its stored success.
   */
  reserve(request: ReservationRequest): Promise<ReservationAnswer>;
  /**
   * Settles an intent: a success keeps the key and its receipt, anything else frees the key if it is reserved by this
   * run for this intent. The first stored success stands. Idempotent.
   */
  settleReservation(request: ReservationRequest & { receipt: Receipt | null }): Promise<void>;
  /** Ids of runs that may be due or have changed: a hint that may be lost, doubled or late. Ends when `signal` aborts. */
  watch(signal: AbortSignal): AsyncIterable<string>;
  /** Structural digest per agent and version, first writer wins; returns the stored one. */
  registerStructure(agent: string, version: number, structure: string): Promise<string>;
  nowMs(): Promise<number>;
  close(): Promise<void>;
}

/** Limits of what may be stored, refused before anything is written. Bytes are UTF-8. */
export const LIMITS = {
  eventBytes: 256 * 1024,
  recordBytes: 4 * 1024 * 1024,
  /** Beside the event or output that the entry holds. */
  entryBytes: 64 * 1024,
  inboxItems: 10_000,
  deferredItems: 100,
  claimInboxItems: 100,
} as const;
