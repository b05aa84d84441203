/**
 * A commit in the making: a working copy of a run's record and everything that will be written with it.
 * Nothing of the held run changes before the commit is answered, so a draft can be thrown away at any time.
 */
import type { LiveSnapshot } from '../machines/step.ts';
import { operationStatus, type OperationEvent } from '../machines/operation.ts';
import type {
  ClosedOperation,
  Completion,
  EntryCause,
  EntryKind,
  IncomingEvent,
  Json,
  NewEntry,
  Operation,
  OperationKey,
  Receipt,
  RunRecord,
  StepStop,
  StoredOperation,
  StoredVerdict,
} from '../records.ts';
import type { RegisteredAgent } from './agents.ts';

/** What a draft starts from: the last committed state of a run, as its worker holds it. */
export interface Base {
  agent: RegisteredAgent;
  record: RunRecord;
  snapshot: LiveSnapshot;
  sequence: number;
  position: number;
  fence: number;
  /** Terminal receipts stored for open operations. */
  receipts: Readonly<Record<string, Receipt>>;
  /** What is known of operations by business key digest, beside the open ones. */
  known: ReadonlyMap<string, StoredOperation>;
  /** Operations with a call under way in this process. */
  calling: ReadonlySet<string>;
}

export interface PlannedCall {
  operationId: string;
  attempt: number;
  atMs: number;
}

type MapField = 'invocations' | 'operations' | 'timers' | 'approvals' | 'children' | 'labels' | 'effects';
type ListField = 'pending' | 'standing' | 'owed' | 'compensations' | 'blocked' | 'deferred' | 'outbox' | 'waitingFor';

/** At most this many macrosteps in one commit; then `needs_human`, reason `runaway`. */
export const MAX_MACROSTEPS = 100;
/** Writes remembered in the record for `doNotRepeat`. */
const REMEMBERED_EFFECTS = 100;

/** The id of the timer that a run's deadline is. */
export const DEADLINE_TIMER = 'pawl.deadline';

const STEP_STOPS: ReadonlySet<string> = new Set<StepStop>([
  'step_threw',
  'runaway',
  'migration_unmapped',
  'record_unreadable',
]);

/** Whether a run's escalation stops all reducing. */
export function isStopped(record: RunRecord): boolean {
  return record.escalation !== null && STEP_STOPS.has(record.escalation.reason);
}

/** Whether the escalation still waits for a person. */
export function isAsked({ escalation, operations }: RunRecord): boolean {
  if (escalation === null) return false;
  const { reason, operationId } = escalation;
  return STEP_STOPS.has(reason) || operationId === undefined || operations[operationId]?.status === 'escalated';
}

export class Draft {
  readonly base: Base;
  readonly record: RunRecord;
  /** Store time known when the draft was begun; the time of all its entries. */
  readonly nowMs: number;
  snapshot: LiveSnapshot;
  sequence: number;
  position: number;
  macrosteps = 0;
  /** Deferred events may be legal for which this commit has no room. */
  isCut = false;
  readonly entries: NewEntry[] = [];
  readonly keys: OperationKey[] = [];
  readonly receipts: Receipt[] = [];
  readonly attempts: { operationId: string; attempt: number }[] = [];
  readonly closes: ClosedOperation[] = [];
  readonly verdicts: { eventId: string; verdict: StoredVerdict }[] = [];
  readonly calls: PlannedCall[] = [];
  /** Operations whose running call should be aborted once the commit is applied. */
  readonly aborts: Set<string> = new Set();
  /** Operations that an invocation left in this draft; what becomes of them is said when nothing follows any more. */
  readonly left: Set<string> = new Set();
  /** Completions and own events that follow in the same commit, oldest first. */
  readonly follow: ({ kind: 'completion'; completion: Completion } | { kind: 'event'; event: Json })[] = [];
  readonly logs: { label: string | null; value: Json }[] = [];
  /** What this draft learns of keys; kept by the worker when the commit is applied. */
  readonly learned = new Map<string, StoredOperation>();
  readonly #owned = new Set<string>();

  constructor(base: Base, nowMs: number) {
    this.base = base;
    this.record = { ...base.record };
    this.nowMs = nowMs;
    this.snapshot = base.snapshot;
    this.sequence = base.sequence;
    this.position = base.position;
  }

  /** Nothing was reduced, planned, delivered or consumed. */
  get isIdle(): boolean {
    const { record, base } = this;
    const same = (['operations', 'blocked', 'outbox', 'timers', 'escalation'] as const).every(
      (field) => record[field] === base.record[field],
    );
    return same && this.entries.length === 0 && this.macrosteps === 0 && this.position === base.position;
  }

  /** A map of the record that may be changed; copied once per draft. */
  map<F extends MapField>(field: F): RunRecord[F] {
    if (!this.#owned.has(field)) {
      this.record[field] = dictionaryOf(this.record[field]);
      this.#owned.add(field);
    }
    return this.record[field];
  }

  /** What this map holds now stays as it is: the next change makes a new copy. */
  keepAsIs(field: MapField): void {
    this.#owned.delete(field);
  }

  /** A list of the record that may be changed; copied once per draft. */
  list<F extends ListField>(field: F): RunRecord[F] {
    if (!this.#owned.has(field)) {
      this.record[field] = [...this.record[field]] as RunRecord[F];
      this.#owned.add(field);
    }
    return this.record[field];
  }

  entry(kind: EntryKind, fields: { [field: string]: Json | undefined }, cause?: EntryCause): void {
    this.entries.push({ sequence: this.sequence, kind, atMs: this.nowMs, ...(cause ? { cause } : {}), ...fields });
  }

  operation(operationId: string): Operation | undefined {
    return this.record.operations[operationId];
  }

  /** Replaces an open operation by a changed copy. */
  changeOperation(operationId: string, change: Partial<Operation>): Operation {
    const before = this.record.operations[operationId];
    if (!before) throw new TypeError(`operation ${operationId} is not open`);
    const after = { ...before, ...change };
    this.map('operations')[operationId] = after;
    return after;
  }

  /** Moves an open operation along an edge of its statechart. */
  moveOperation(operationId: string, event: OperationEvent, change: Partial<Operation> = {}): Operation {
    const before = this.record.operations[operationId];
    if (!before) throw new TypeError(`operation ${operationId} is not open`);
    return this.changeOperation(operationId, { ...change, status: operationStatus(before.status, event) });
  }

  /** Takes an operation out of the record; what is known of its key stays a fact of the store. */
  closeOperation(operationId: string, event: OperationEvent, receipt: Receipt | null): void {
    const operation = this.moveOperation(operationId, event);
    delete this.map('operations')[operationId];
    const closed: ClosedOperation = {
      operationId,
      status: operation.status,
      attempts: operation.attemptCount,
      inputDigest: operation.inputDigest,
    };
    this.closes.push(closed);
    if (operation.scope === 'tenant') {
      const { key: to, intent } = operation;
      const settled = receipt && { ...receipt, inputDigest: operation.inputDigest };
      this.list('outbox').push({
        id: `${operationId}.${intent}`,
        to,
        kind: 'settle_reservation',
        intent,
        receipt: settled,
      });
    }
    const { key: keyDigest, generation, inputDigest } = operation;
    this.learned.set(keyDigest, {
      operationId,
      key: { keyDigest, operationId, generation, inputDigest },
      closed,
      receipt: receipt?.outcome === 'succeeded' || receipt?.outcome === 'failed' ? receipt : null,
    });
  }

  knownByKey(keyDigest: string): StoredOperation | undefined {
    return this.learned.get(keyDigest) ?? this.base.known.get(keyDigest);
  }

  /** Notes a write that happened, for `doNotRepeat`. */
  rememberEffect(operationId: string, tool: string, kind: Operation['kind']): void {
    if (kind !== 'write') return;
    const effects = this.map('effects');
    effects[operationId] = { tool, atMs: this.nowMs };
    const ids = Object.keys(effects);
    if (ids.length > REMEMBERED_EFFECTS) delete effects[ids[0] as string];
  }

  complete(completion: Completion): void {
    this.follow.push({ kind: 'completion', completion });
  }

  /** What a person is asked for first stays, until it is answered; only what stops the run comes before it. */
  escalate(reason: string, fields: { message?: string; operationId?: string; invocationId?: string } = {}): void {
    if (STEP_STOPS.has(reason) || !isAsked(this.record)) {
      this.record.escalation = { reason, ...fields, atMs: this.nowMs };
    }
    this.entry('escalated', { reason, ...fields });
  }

  verdict(event: IncomingEvent, verdict: StoredVerdict['verdict'], reason?: string): void {
    this.verdicts.push({
      eventId: event.eventId,
      verdict: {
        verdict,
        sequence: this.sequence,
        state: this.record.machine.value,
        ...(reason === undefined ? {} : { reason }),
      },
    });
  }
}

/**
 * A copy of a map whose keys are ids that come and go. Made without a prototype it is a dictionary to the engine; as an
 * ordinary object every new id would be a new shape, and whatever code meets it would be slow for all shapes.
 */
function dictionaryOf<T extends Record<string, unknown>>(map: T): T {
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(map)) copy[key] = map[key];
  return copy as T;
}
