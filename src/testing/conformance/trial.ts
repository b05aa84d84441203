/** What every section of the conformance suite works with: a fresh store, a clock that can be moved, sample commits. */
import assert from 'node:assert/strict';
import type { Commit, IncomingEvent, Json, LedgerEntry, Receipt, RunRecord, RunSummary } from '../../records.ts';
import type { Claim, Store, StoredRun } from '../../persistence/store.ts';

/** A store under test. */
export interface ConformanceStore {
  store: Store;
  /** Another connection to the same data, as a second process would have; closed by `cleanup`. */
  second?: () => Promise<Store> | Store;
  /** Closes the store and opens the same data again. */
  reopen?: () => Promise<Store> | Store;
  /** Moves the store's clock; without it the suite waits in real time. */
  advance?: (ms: number) => void;
  cleanup: () => Promise<void> | void;
}

export interface ConformanceSupport {
  /** Levels that a commit of this store reaches, default both. */
  durability?: ('process' | 'disk')[];
  /** Set when `createStore` gives `second`: two owners on one set of data. */
  secondProcess?: boolean;
  /** Set when `createStore` gives `reopen`. */
  reopen?: boolean;
}

export interface ConformanceOptions {
  /** Registers a test: `test` of node:test, Vitest, Jest or Mocha. */
  test: (name: string, run: () => Promise<void>) => unknown;
  createStore: () => Promise<ConformanceStore> | ConformanceStore;
  supports?: ConformanceSupport;
}

/** One test with a store of its own. */
export interface Trial extends ConformanceStore {
  supports: ConformanceSupport;
  wait: (ms: number) => Promise<void>;
}

export type Check = (name: string, run: (trial: Trial) => Promise<void>) => void;

export const AGENT = 'refund';
export const AGENTS = { [AGENT]: [1] };
export const INPUT_DIGEST = 'a'.repeat(64);

/** A record of about the real size. To a store it is opaque but for `format`, so it need not have every field. */
export function sampleRecord(runId: string, context: Json = { step: 0 }): RunRecord {
  const record: RunRecord = JSON.parse(
    JSON.stringify({
      format: 1,
      runId,
      tenant: 'default',
      agent: AGENT,
      agentVersion: 1,
      labels: {},
      status: 'running',
      machine: { value: 'working', context, history: {}, status: 'active', output: null, error: null, tags: [] },
      invocations: {},
      pending: [],
      operations: {},
      timers: {},
      outbox: [],
      escalation: null,
      waitingFor: [],
      createdAtMs: 0,
      updatedAtMs: 0,
    }),
  );
  return record;
}

export function sampleSummary(changes: Partial<RunSummary> = {}): RunSummary {
  return {
    status: 'running',
    states: ['working'],
    tenant: 'default',
    agent: AGENT,
    agentVersion: 1,
    waitingFor: [],
    openApprovals: [],
    unknown: false,
    subject: null,
    labels: {},
    createdAtMs: 0,
    updatedAtMs: 0,
    ...changes,
  };
}

let lastNumber = 0;

/** An id that no other test uses. */
export function freshId(prefix: string): string {
  return `${prefix}-${++lastNumber}`;
}

/** The first commit of a run: sequence 1, free, due at once. */
export function firstCommit(runId: string, changes: Partial<Commit> = {}): Commit {
  return {
    runId,
    commitId: freshId('commit'),
    after: '',
    fence: 0,
    expectedSequence: 0,
    sequence: 1,
    expectedPosition: 0,
    position: 0,
    record: { full: JSON.stringify(sampleRecord(runId)) },
    summary: sampleSummary(),
    keys: [],
    receipts: [],
    attempts: [],
    closes: [],
    verdicts: [],
    entries: [{ sequence: 1, kind: 'started', atMs: 0, input: null }],
    lease: { releaseDueAtMs: 0 },
    close: false,
    durability: 'process',
    ...changes,
  };
}

/** The next commit of whoever holds this claim: one macrostep, lease kept. */
export function commitAfter(run: StoredRun, changes: Partial<Commit> = {}): Commit {
  const { facts, runId } = run;
  const sequence = changes.sequence ?? facts.sequence + 1;
  return {
    ...firstCommit(runId),
    after: facts.commitId,
    fence: facts.fence,
    expectedSequence: facts.sequence,
    sequence,
    expectedPosition: facts.position,
    position: facts.position,
    record: { full: JSON.stringify(sampleRecord(runId, { step: sequence })) },
    entries: [{ sequence, kind: 'transitioned', atMs: 0, event: { type: 'GO' } }],
    lease: { keepMs: 10_000 },
    ...changes,
  };
}

export async function createRun(store: Store, changes: Partial<Commit> = {}): Promise<string> {
  const runId = changes.runId ?? freshId('run');
  const { kind } = await store.create(firstCommit(runId, changes));
  assert.equal(kind, 'created');
  return runId;
}

/** Takes a free run, due or not. */
export async function claimRun(store: Store, runId: string, leaseMs = 10_000, workerId = 'worker-1'): Promise<Claim> {
  const [claim] = await store.claim({ workerId, leaseMs, limit: 1, agents: AGENTS, runIds: [runId] });
  assert.ok(claim, `run ${runId} was free and could not be claimed`);
  return claim;
}

export async function tryClaim(store: Store, runId: string): Promise<Claim | undefined> {
  const request = { workerId: 'worker-2', leaseMs: 10_000, limit: 1, agents: AGENTS, runIds: [runId] };
  return (await store.claim(request))[0];
}

/** Commits and expects `ok`; returns what a worker then holds. */
export async function commitOk(store: Store, claim: Claim, changes: Partial<Commit> = {}): Promise<Claim> {
  const answer = await store.commit(commitAfter(claim, changes));
  assert.equal(answer.kind, 'ok');
  const run = await loadRun(store, claim.runId);
  return { ...claim, ...run };
}

export async function loadRun(store: Store, runId: string): Promise<StoredRun> {
  const run = await store.load(runId);
  assert.ok(run, `run ${runId} is missing`);
  return run;
}

export function sampleEvent(eventId: string = freshId('event'), event: { [key: string]: Json } = {}): IncomingEvent {
  return { eventId, by: 'ann', body: { kind: 'event', event: { type: 'GO', ...event } } };
}

export function sampleReceipt(operationId: string, changes: Partial<Receipt> = {}): Receipt {
  return { operationId, attempt: 1, outcome: 'succeeded', output: { ok: true }, via: 'execute', atMs: 5, ...changes };
}

export async function ledgerOf(
  store: Store,
  runId: string,
  from?: Parameters<Store['read']>[1],
): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const entry of store.read(runId, from)) entries.push(entry);
  return entries;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
