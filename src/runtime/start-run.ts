/** The first commit of a run. It stores nothing unless the whole initial step went well. */
import { PawlError } from '../errors.ts';
import type { Json, RunRecord } from '../records.ts';
import type { Policy } from '../tools/policy.ts';
import type { RegisteredAgent } from './agents.ts';
import { encodeCommit } from './commit.ts';
import { DEADLINE_TIMER, Draft } from './draft.ts';
import { dueAtMs, finishDraft } from './finish.ts';
import { beginRun, stepFault } from './macrostep.ts';
import { reduceFollowing } from './reduce.ts';
import { emptyBudget } from './view.ts';

export interface NewRun {
  runId: string;
  input: Json;
  tenant: string;
  createdBy: string | null;
  deadlineAtMs: number | null;
  budget: RunRecord['budget']['limit'];
  subject: string | null;
  labels: Record<string, string>;
  traceId: string;
}

/** @throws RUN_NOT_STARTED when the initial step throws */
export function firstCommit(
  agent: RegisteredAgent,
  run: NewRun,
  context: { commitId: string; nowMs: number; policy: Policy; durability: 'process' | 'disk' | { replicas: number } },
): ReturnType<typeof encodeCommit> {
  const { nowMs } = context;
  const record = newRecord(agent, run, context.policy, nowMs);
  const draft = new Draft(
    {
      agent,
      record,
      // Replaced by the initial step before anything reads it.
      snapshot: undefined as never,
      sequence: 0,
      position: 0,
      fence: 0,
      receipts: {},
      known: new Map(),
      calling: new Set(),
    },
    nowMs,
  );
  draft.entry('started', {
    agent: record.agent,
    agentVersion: record.agentVersion,
    structure: record.structure,
    input: record.input,
    createdBy: record.createdBy,
  });
  try {
    beginRun(draft, run.input);
  } catch (error) {
    const { message } = stepFault(error);
    throw new PawlError('RUN_NOT_STARTED', `Run ${run.runId} of agent '${record.agent}' was not started: ${message}`, {
      details: { runId: run.runId, agent: record.agent },
      cause: error,
    });
  }
  if (run.deadlineAtMs !== null && record.machine.status === 'active') {
    draft.map('timers')[DEADLINE_TIMER] = {
      id: DEADLINE_TIMER,
      kind: 'deadline',
      dueAtMs: run.deadlineAtMs,
      event: { type: 'DEADLINE_EXCEEDED' },
      armedAt: draft.sequence,
    };
  }
  reduceFollowing(draft);
  finishDraft(draft);
  return encodeCommit(draft, {
    commitId: context.commitId,
    after: '',
    durability: context.durability,
    lease: { releaseDueAtMs: dueAtMs(draft.record, nowMs) },
    previous: null,
  });
}

function newRecord(agent: RegisteredAgent, run: NewRun, policy: Policy, nowMs: number): RunRecord {
  const { definition } = agent;
  const goal: unknown = definition.goal({ input: run.input });
  if (typeof goal !== 'string') {
    throw new PawlError('AGENT_INVALID', `The goal of agent '${definition.name}' must be a string.`, {
      details: { agent: definition.name },
    });
  }
  return {
    format: 1,
    runId: run.runId,
    tenant: run.tenant,
    agent: definition.name,
    agentVersion: definition.version,
    structure: definition.structure,
    versions: { models: {}, prompts: {}, tools: agent.toolVersions, policy: policy.version },
    traceId: run.traceId,
    subject: run.subject,
    labels: run.labels,
    plan: null,
    artifacts: {},
    parent: null,
    createdBy: run.createdBy,
    input: run.input,
    goal,
    status: 'running',
    machine: { value: '', context: null, history: {}, status: 'active', output: null, error: null, tags: [] },
    snapshotDigest: '',
    invocations: {},
    pending: [],
    operations: {},
    standing: [],
    owed: [],
    compensations: [],
    blocked: [],
    effects: {},
    timers: {},
    approvals: {},
    deferred: [],
    outbox: [],
    children: {},
    budget: { ...emptyBudget(nowMs), limit: run.budget },
    deadlineAtMs: run.deadlineAtMs,
    cancel: null,
    escalation: null,
    finishedAtMs: null,
    lastConfirmed: null,
    allowed: [],
    next: { kind: 'none', reason: '' },
    waitingFor: [],
    committedFence: 0,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}
