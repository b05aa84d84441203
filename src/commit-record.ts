/** What one commit carries and what the store answers: the atomic write as a type. */
import type { InboxEvent, Json, NewEntry, OperationStatus, Receipt, RunStatus } from './records.ts';

/** The stored answer to one event. `state` is the machine's value after it. */
export interface StoredVerdict {
  verdict: 'applied' | 'refused' | 'deferred' | 'dropped';
  sequence: number;
  state: Json;
  reason?: string;
}

/** What feeds `list()`; kept in columns of its own. */
export interface RunSummary {
  status: RunStatus;
  /** Every dotted path of the state value. */
  states: string[];
  tenant: string;
  agent: string;
  agentVersion: number;
  waitingFor: string[];
  openApprovals: string[];
  unknown: boolean;
  subject: string | null;
  labels: Record<string, string>;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface OperationKey {
  keyDigest: string;
  operationId: string;
  generation: number;
  inputDigest: string;
  /** Of an operation that is opened or reopened: attempts known to have been made. `conflict` if others are stored. */
  attempts?: number;
}

export interface ClosedOperation {
  operationId: string;
  status: OperationStatus;
  attempts: number;
  inputDigest: string;
}

export type RecordText = { full: string } | { patch: string; baseDigest: string };
export type Durability = 'process' | 'disk' | { replicas: number };

export interface Commit {
  runId: string;
  commitId: string;
  /** Id of the last commit this worker knows to be applied (from a claim: `facts.commitId`). */
  after: string;
  fence: number;
  /** Equal when no macrostep ran; +1 per macrostep otherwise. */
  expectedSequence: number;
  sequence: number;
  /** Inbox consumed from, to. */
  expectedPosition: number;
  position: number;
  record: RecordText;
  summary: RunSummary;
  /** Stored if absent, if the stored generation is lower, or if the same operation is closed as not_executed or withdrawn. */
  keys: OperationKey[];
  /** Stored if absent; `conflict` if another outcome is stored. */
  receipts: Receipt[];
  /** `conflict` if a terminal receipt is stored for it. */
  attempts: { operationId: string; attempt: number }[];
  /** Operations that left the record in this commit. */
  closes: ClosedOperation[];
  verdicts: { eventId: string; verdict: StoredVerdict }[];
  entries: NewEntry[];
  /** The store overrides the due time with "now" when its inbox holds more than `position` or the outbox is not empty. */
  lease: { keepMs: number } | { releaseDueAtMs: number | null };
  /** The run is finished and its outbox empty; the store closes it if its inbox is consumed too. */
  close: boolean;
  durability: Durability;
}

/** What the store knows of an operation beside the record. */
export interface StoredOperation {
  operationId: string;
  key: OperationKey | null;
  closed: ClosedOperation | null;
  receipt: Receipt | null;
}

export type CommitResult =
  | {
      kind: 'ok' | 'repeated';
      inbox: InboxEvent[];
      nowMs: number;
      leaseUntilMs: number | null;
      durable: boolean;
      closed: boolean;
    }
  | {
      kind: 'conflict';
      on: 'key' | 'receipt' | 'attempt';
      operationId: string;
      stored: StoredOperation;
      inbox: InboxEvent[];
      nowMs: number;
    }
  | { kind: 'stale_fence' | 'stale_sequence' | 'missing' };
