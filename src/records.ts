/**
 * The glossary as types: what a run is, what is stored of it, and what one commit carries.
 *
 * Ids match `[A-Za-z0-9._:-]{1,200}`. Times are epoch milliseconds of the STORE's clock unless a name says otherwise.
 * The order in which these are written is in ARCHITECTURE.md.
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A failure as plain data: what a machine sees at `onError`. */
export interface Fault {
  code: string;
  message: string;
  details?: Json;
}

export type RunStatus = 'running' | 'waiting' | 'needs_human' | 'done' | 'failed' | 'cancelled';

/** Reasons of `needs_human` that stop the reducing of a run; all others concern one operation only. */
export type StepStop = 'step_threw' | 'runaway' | 'migration_unmapped' | 'record_unreadable';

/** The stored state of the machine: strict JSON, readable without the agent's code. */
export interface MachineState {
  value: Json;
  context: Json;
  /** History state id → ids of the state nodes it remembers. */
  history: Record<string, string[]>;
  status: 'active' | 'done' | 'error';
  output: Json;
  error: Fault | null;
  tags: string[];
}

/** The decision half of a run: one opaque text to the store, written only by a commit under the fence. */
export interface RunRecord {
  format: 1;
  runId: string;
  tenant: string;
  agent: string;
  agentVersion: number;
  /** Digest of the machine's structure. */
  structure: string;
  versions: {
    models: Record<string, string>;
    prompts: Record<string, string>;
    tools: Record<string, { version: string; schemaDigest: string }>;
    policy: string;
  };
  traceId: string;
  subject: string | null;
  labels: Record<string, string>;
  plan: { version: number; digest: string; artifact: string } | null;
  artifacts: Record<
    string,
    { version: number; digest: string; mediaType: string; bytes: number; atMs: number; by: string }
  >;
  parent: { runId: string; invocationId: string } | null;
  createdBy: string | null;
  input: Json;
  goal: string;
  status: RunStatus;
  machine: MachineState;
  /** Chain over what each macrostep changed; also in each `transitioned` entry. */
  snapshotDigest: string;
  /** Live invocations by invocationId; settled ones are removed. */
  invocations: Record<string, Invocation>;
  /** Settled and not yet reduced: the step threw, or more than fits one commit. */
  pending: Completion[];
  /** Open operations only; closed ones are facts. */
  operations: Record<string, Operation>;
  /** Succeeded writes that say how to compensate, in the order in which their receipts were reduced, until finished. */
  standing: { operationId: string; compensate: { tool: string; input: Json } }[];
  /** Succeeded writes that nobody waited for and that say how to compensate: to be compensated. */
  owed: { operationId: string; compensate: { tool: string; input: Json } }[];
  compensations: { operationId: string; compensates: string; status: OperationStatus }[];
  /** Invocations that wait for an operation of another owner: compensating, escalated or reserved elsewhere. */
  blocked: { invocationId: string; operationId: string }[];
  /** Writes that happened, by operationId, newest last, at most 100; those in flight are among `operations`. */
  effects: Record<string, { tool: string; atMs: number }>;
  timers: Record<string, Timer>;
  approvals: Record<string, ApprovalRequest>;
  /** In position order, at most 100. */
  deferred: InboxEvent[];
  /** In order; empty before the run counts as closed. */
  outbox: OutboxItem[];
  children: Record<string, 'running' | 'cancelling' | 'finished'>;
  budget: Budget;
  deadlineAtMs: number | null;
  cancel: { by: string; reason: string; atMs: number } | null;
  escalation: Escalation | null;
  /** Set when the run is finished; status is fixed from then on. */
  finishedAtMs: number | null;
  lastConfirmed: {
    operationId: string;
    tool: string;
    outcome: Receipt['outcome'];
    receiptDigest: string;
    atMs: number;
  } | null;
  /** Computed at commit, so that any process can show them. */
  allowed: string[];
  next: NextAction;
  waitingFor: string[];
  /** Fence of the commit that wrote this; claims since then ended without one. */
  committedFence: number;
  createdAtMs: number;
  updatedAtMs: number;
}

export interface Escalation {
  reason: string;
  message?: string;
  operationId?: string;
  invocationId?: string;
  atMs: number;
}

export interface NextAction {
  kind:
    | 'await_human'
    | 'reconcile'
    | 'reduce'
    | 'execute'
    | 'decide'
    | 'await_approval'
    | 'await_child'
    | 'await_event'
    | 'await_timer'
    | 'none';
  operationId?: string;
  tool?: string;
  reason: string;
}

/** The fact half: kept by the store beside the record, never overwritten by it. */
export interface RunFacts {
  /** Committed macrosteps; the initial one is 1. */
  sequence: number;
  fence: number;
  lease: { workerId: string; untilMs: number } | null;
  /** Id of the last applied commit. */
  commitId: string;
  /** Last consumed inbox position. */
  position: number;
  /** Finished, inbox consumed, outbox empty. */
  closed: boolean;
  /** Of open operations: terminal ones by operationId, `not_executed` by `operationId#attempt`. */
  receipts: Record<string, Receipt>;
}

export interface Invocation {
  /** `<sequence>.<index>`, fixed by the macrostep that started it. */
  invocationId: string;
  /** The chart's invoke id. */
  id: string;
  /** The registered name of the logic. */
  src: string;
  kind: 'tool' | 'decide' | 'approval' | 'child';
  input: Json;
  startedAtMs: number;
  operationId?: string;
  requestId?: string;
  childRunId?: string;
}

export type Completion = { invocationId: string; output: Json } | { invocationId: string; error: Fault };

export type OperationStatus =
  | 'intended'
  | 'blocked'
  | 'attempted'
  | 'unknown'
  | 'succeeded'
  | 'failed'
  | 'not_executed'
  | 'withdrawn'
  | 'compensating'
  | 'compensated'
  | 'escalated';

export interface Operation {
  operationId: string;
  /** Digest of tenant or run, tool and business key. */
  key: string;
  generation: number;
  tool: string;
  toolVersion: string;
  kind: 'read' | 'write' | 'decide';
  /** What a worker does with an attempt that has no receipt. */
  recovery: 'repeat' | 'reconcile' | 'human';
  scope: 'run' | 'tenant';
  status: OperationStatus;
  input: Json;
  inputDigest: string;
  /** Invocations that wait for it; empty means abandoned. */
  joined: string[];
  /** The operation it undoes; it then has no invocation and is never withdrawn. */
  compensates?: string;
  attempts: { attempt: number; fence: number; atMs: number }[];
  /** Attempt numbers go on when an operation is reopened. */
  attemptCount: number;
  /** Not to be attempted or reconciled before this time; 0 means now. */
  notBeforeMs: number;
  /** An absence was believed inside the window of an attempt: that attempt may still land. */
  soft: boolean;
  /** Attempts that ended without an effect, against `retry.maxAttempts`. */
  tries: number;
  /** Attempts whose worker went away before an answer was stored; they use up no try. */
  crashes: number;
  /** The latest attempt is one of them. */
  orphaned: boolean;
  reconciles: number;
  /** When the outcome first became unknown; `reconcileForMs` runs from here. */
  unknownSinceMs: number | null;
  intendedAtMs: number;
  /** The sequence at which the run intended it; names a reservation in tenant scope. */
  intent: number;
  /** Why it waits, for `explain`. */
  reason?: string;
  approvalId?: string;
  reservedCost?: { tokens: number; microUsd: number };
  refusals?: { reason: string; proposal: Json }[];
  evidence?: Json;
}

export interface Receipt {
  operationId: string;
  attempt: number;
  outcome: 'succeeded' | 'failed' | 'not_executed' | 'unknown';
  output?: Json;
  error?: Fault;
  via: 'execute' | 'reconcile' | 'resolve';
  by?: string;
  evidence?: string;
  atMs: number;
  /** In tenant scope: what the owner's input was, for others who mean the same action. */
  inputDigest?: string;
  spent?: { tokens: number; microUsd: number };
}

export interface Timer {
  id: string;
  kind: 'after' | 'raise' | 'send' | 'deadline' | 'wall_time' | 'approval';
  dueAtMs: number;
  event: Json;
  to?: string;
  /** Generation: the sequence that armed it. */
  armedAt: number;
}

export interface ApprovalRequest {
  requestId: string;
  name: string;
  version: string;
  invocationId: string;
  covers: Json;
  digest: string;
  resourceVersion: string | null;
  requester: string | null;
  votes: { by: string; roles: string[]; verdict: 'approve' | 'reject'; atMs: number; note?: string }[];
  status: 'open' | 'approved' | 'rejected' | 'expired' | 'invalidated' | 'withdrawn';
  expiresAtMs: number;
  usedBy: string | null;
  reason?: string;
}

export interface Spend {
  tokens: number;
  microUsd: number;
  toolCalls: number;
  steps: number;
}

export interface Budget {
  limit: Partial<Spend> & { wallTimeMs?: number };
  spent: Spend;
  reserved: Spend;
  startedAtMs: number;
  perState: Record<string, Spend>;
}

export type OutboxItem =
  | {
      id: string;
      to: string;
      kind: 'start';
      agent: string;
      agentVersion: number;
      input: Json;
      invocationId: string;
      budget: Spend;
    }
  | { id: string; to: string; kind: 'event'; event: Json }
  | { id: string; to: string; kind: 'cancel' }
  | { id: string; to: string; kind: 'child_done'; invocationId: string; output?: Json; error?: Fault; spent: Spend }
  | { id: string; to: string; kind: 'settle_reservation'; intent: number; receipt: Receipt | null };

export type InboxBody =
  | { kind: 'event'; event: { type: string; [key: string]: Json } }
  | { kind: 'receipt'; receipt: Receipt }
  | { kind: 'child'; childRunId: string; invocationId: string; completion: Completion }
  | { kind: 'vote'; requestId: string; digest: string; verdict: 'approve' | 'reject'; note?: string }
  | { kind: 'cancel'; reason: string }
  | { kind: 'release'; reason: string };

/** What a sender hands to the store; the store adds position and time. */
export interface IncomingEvent {
  eventId: string;
  by: string | null;
  roles?: string[];
  expectedSequence?: number;
  body: InboxBody;
}

export interface InboxEvent extends IncomingEvent {
  position: number;
  atMs: number;
}

export type {
  ClosedOperation,
  Commit,
  CommitResult,
  Durability,
  OperationKey,
  RecordText,
  RunSummary,
  StoredOperation,
  StoredVerdict,
} from './commit-record.ts';

export const ENTRY_KINDS = [
  'started',
  'accepted',
  'refused',
  'deferred',
  'dropped',
  'joined',
  'withdrawn',
  'blocked',
  'conflict',
  'compacted',
  'transitioned',
  'intended',
  'attempted',
  'received',
  'reconciled',
  'proposed',
  'approval_requested',
  'approval_decided',
  'approval_invalidated',
  'timer_armed',
  'timer_fired',
  'timer_cancelled',
  'artifact',
  'spent',
  'stale',
  'emitted',
  'child_started',
  'child_finished',
  'migrated',
  'cancel_requested',
  'compensated',
  'escalated',
  'resolved',
  'released',
  'forked',
  'finished',
] as const;
export type EntryKind = (typeof ENTRY_KINDS)[number];

export interface EntryCause {
  eventId?: string;
  invocationId?: string;
  timerId?: string;
  operationId?: string;
}

/** An entry before the store numbers it. `sequence` never falls within one commit. */
export interface NewEntry {
  sequence: number;
  kind: EntryKind;
  atMs: number;
  cause?: EntryCause;
  [field: string]: Json | undefined | object;
}

/** `index` counts the entries of one run from 0 without a gap; the store gives it. */
export interface LedgerEntry extends NewEntry {
  runId: string;
  index: number;
}
