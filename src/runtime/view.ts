/** What a run is, for people and programs: one store call, readable without the agent's code. */
import { digestOf } from '../json.ts';
import type { StoredRun } from '../persistence/store.ts';
import type {
  ApprovalRequest,
  Budget,
  Fault,
  Json,
  NextAction,
  Operation,
  RunFacts,
  RunRecord,
  RunStatus,
  Timer,
} from '../records.ts';

export interface OpenOperationView {
  operationId: string;
  tool: string;
  status: Operation['status'];
  attempts: number;
  idempotencyKey: string;
  inputDigest: string;
  since: number;
  reason: string | null;
  notBeforeMs: number;
}

/** `T` is the state value, `C` the context, `O` the output. */
export interface RunView<T = Json, C = Json, O = Json> {
  runId: string;
  agent: string;
  agentVersion: number;
  tenant: string;
  status: RunStatus;
  state: T;
  tags: string[];
  sequence: number;
  goal: string;
  context: C;
  output: O | null;
  error: Fault | null;
  lastConfirmedEffect: RunRecord['lastConfirmed'];
  openOperations: OpenOperationView[];
  /** Writes that may already have happened, the newest 100. */
  doNotRepeat: { operationId: string; tool: string; outcome: 'succeeded' | 'attempted' | 'unknown'; atMs: number }[];
  next: NextAction & { allowedEvents: string[] };
  position: {
    state: Json;
    sequence: number;
    invocationId: string | null;
    attempt: number | null;
    planVersion: number | null;
    planDigest: string | null;
  };
  plan: RunRecord['plan'];
  artifacts: RunRecord['artifacts'];
  approvals: ApprovalRequest[];
  timers: Timer[];
  inbox: { waiting: number; deferred: { eventId: string; type: string }[] };
  budget: Budget;
  deadlineAtMs: number | null;
  cancel: RunRecord['cancel'];
  compensations: RunRecord['compensations'];
  versions: RunRecord['versions'];
  children: { runId: string; invocationId: string; status: string }[];
  lease: RunFacts['lease'];
  waitingFor: string[];
  createdBy: string | null;
  subject: string | null;
  labels: Record<string, string>;
  traceId: string;
  input: Json;
  createdAtMs: number;
  updatedAtMs: number;
}

export function viewOf(run: StoredRun): RunView {
  return run.record === null ? unreadableView(run) : readableView(run, run.record);
}

function readableView(run: StoredRun, record: RunRecord): RunView {
  const { facts } = run;
  const operations = Object.values(record.operations);
  const current = Object.values(record.invocations)[0];
  const currentOperation = current?.operationId === undefined ? undefined : record.operations[current.operationId];
  return {
    runId: run.runId,
    agent: record.agent,
    agentVersion: record.agentVersion,
    tenant: record.tenant,
    status: record.status,
    state: record.machine.value,
    tags: record.machine.tags,
    sequence: facts.sequence,
    goal: record.goal,
    context: record.machine.context,
    output: record.machine.output,
    error: record.machine.error ?? escalationFault(record),
    lastConfirmedEffect: lastConfirmed(record, facts),
    openOperations: operations.map(operationView),
    doNotRepeat: doNotRepeat(record, facts),
    next: { ...nextOf(run, record), allowedEvents: record.allowed },
    position: {
      state: record.machine.value,
      sequence: facts.sequence,
      invocationId: current?.invocationId ?? null,
      attempt: currentOperation?.attemptCount ?? null,
      planVersion: record.plan?.version ?? null,
      planDigest: record.plan?.digest ?? null,
    },
    plan: record.plan,
    artifacts: record.artifacts,
    approvals: Object.values(record.approvals),
    timers: Object.values(record.timers),
    inbox: {
      waiting: run.waiting,
      deferred: record.deferred.map(({ eventId, body }) => ({
        eventId,
        type: body.kind === 'event' ? body.event.type : body.kind,
      })),
    },
    budget: record.budget,
    deadlineAtMs: record.deadlineAtMs,
    cancel: record.cancel,
    compensations: record.compensations,
    versions: record.versions,
    children: Object.entries(record.children).map(([runId, status]) => ({ runId, invocationId: '', status })),
    lease: facts.lease,
    waitingFor: record.waitingFor,
    createdBy: record.createdBy,
    subject: record.subject,
    labels: record.labels,
    traceId: record.traceId,
    input: record.input,
    createdAtMs: record.createdAtMs,
    updatedAtMs: record.updatedAtMs,
  };
}

function operationView(operation: Operation): OpenOperationView {
  return {
    operationId: operation.operationId,
    tool: operation.tool,
    status: operation.status,
    attempts: operation.attemptCount,
    idempotencyKey: operation.operationId,
    inputDigest: operation.inputDigest,
    since: operation.attempts.at(-1)?.atMs ?? operation.intendedAtMs,
    reason: operation.reason ?? null,
    notBeforeMs: operation.notBeforeMs,
  };
}

function doNotRepeat(record: RunRecord, facts: RunFacts): RunView['doNotRepeat'] {
  const happened = Object.entries(record.effects).map(([operationId, { tool, atMs }]) => ({
    operationId,
    tool,
    outcome: 'succeeded' as const,
    atMs,
  }));
  const open = Object.values(record.operations).flatMap((operation) => {
    const { operationId, tool, kind, status } = operation;
    const receipt = facts.receipts[operationId];
    const mayHave = status === 'attempted' || status === 'unknown' || status === 'escalated';
    if (kind !== 'write' || !mayHave || receipt?.outcome === 'failed') return [];
    const outcome = receipt
      ? ('succeeded' as const)
      : status === 'attempted'
        ? ('attempted' as const)
        : ('unknown' as const);
    return [{ operationId, tool, outcome, atMs: operation.attempts.at(-1)?.atMs ?? operation.intendedAtMs }];
  });
  return [...happened, ...open].slice(-100);
}

function escalationFault(record: RunRecord): Fault | null {
  const { escalation } = record;
  if (escalation === null || record.status !== 'needs_human') return null;
  return { code: escalation.reason.toUpperCase(), message: escalation.message ?? escalation.reason };
}

/** A receipt that is stored and not yet reduced is already confirmed. */
function lastConfirmed(record: RunRecord, facts: RunFacts): RunRecord['lastConfirmed'] {
  for (const receipt of Object.values(facts.receipts)) {
    const operation = record.operations[receipt.operationId];
    if (operation?.kind !== 'write' || receipt.outcome !== 'succeeded') continue;
    return {
      operationId: receipt.operationId,
      tool: operation.tool,
      outcome: receipt.outcome,
      receiptDigest: digestOf(receipt.output ?? null),
      atMs: receipt.atMs,
    };
  }
  return record.lastConfirmed;
}

/** The stored next action, unless a fact has arrived since: then reducing it comes first. */
function nextOf(run: StoredRun, record: RunRecord): NextAction {
  const stored = Object.values(run.facts.receipts).find((receipt) => {
    const status = record.operations[receipt.operationId]?.status;
    return status !== undefined && status !== 'escalated' && receipt.outcome !== 'not_executed';
  });
  if (stored && record.next.kind !== 'await_human') {
    const { operationId, outcome } = stored;
    const tool = record.operations[operationId]?.tool ?? '';
    return { kind: 'reduce', operationId, tool, reason: `its receipt (${outcome}) is stored; the tool is not called` };
  }
  const waits = record.next.kind === 'await_event' || record.next.kind === 'await_timer' || record.next.kind === 'none';
  if (waits && run.waiting > 0) return { kind: 'reduce', reason: `${run.waiting} stored item(s) wait to be reduced` };
  return record.next;
}

function unreadableView(run: StoredRun): RunView {
  const { summary, facts } = run;
  const reason = `record_unreadable: ${run.unreadable ?? 'unknown'}`;
  return {
    runId: run.runId,
    agent: summary.agent,
    agentVersion: summary.agentVersion,
    tenant: summary.tenant,
    status: 'needs_human',
    state: null,
    tags: [],
    sequence: facts.sequence,
    goal: '',
    context: null,
    output: null,
    error: { code: 'RECORD_UNREADABLE', message: reason },
    lastConfirmedEffect: null,
    openOperations: [],
    doNotRepeat: [],
    next: { kind: 'await_human', reason, allowedEvents: [] },
    position: {
      state: null,
      sequence: facts.sequence,
      invocationId: null,
      attempt: null,
      planVersion: null,
      planDigest: null,
    },
    plan: null,
    artifacts: {},
    approvals: [],
    timers: [],
    inbox: { waiting: run.waiting, deferred: [] },
    budget: emptyBudget(summary.createdAtMs),
    deadlineAtMs: null,
    cancel: null,
    compensations: [],
    versions: { models: {}, prompts: {}, tools: {}, policy: '' },
    children: [],
    lease: facts.lease,
    waitingFor: ['record_unreadable'],
    createdBy: null,
    subject: summary.subject,
    labels: summary.labels,
    traceId: '',
    input: null,
    createdAtMs: summary.createdAtMs,
    updatedAtMs: summary.updatedAtMs,
  };
}

export function emptyBudget(startedAtMs: number): Budget {
  const none = { tokens: 0, microUsd: 0, toolCalls: 0, steps: 0 };
  return { limit: {}, spent: { ...none }, reserved: { ...none }, startedAtMs, perState: {} };
}
