/** The reference model of the Store port: plain maps, one method after the other, nothing kept beyond the process. */
import { systemClock, type Clock } from '../../clock.ts';
import { PawlError } from '../../errors.ts';
import type { Commit, CommitResult, Durability, StoredVerdict } from '../../records.ts';
import { ChangeFeed } from '../change-feed.ts';
import { acceptedEntry, receiptEvent, receivedEntry, refusedEntry } from '../door-entries.ts';
import {
  checkCommit,
  checkEvent,
  checkFirstCommit,
  checkId,
  checkInboxRoom,
  checkListFilter,
} from '../store-checks.ts';
import type { Claim, ListFilter, Store } from '../store.ts';
import { entryOf, receiptOf } from '../stored-text.ts';
import { MemoryReservations } from './memory-reservations.ts';
import { MemoryRun } from './memory-run.ts';

export interface MemoryStoreOptions {
  clock?: Pick<Clock, 'nowMs'>;
  /**
   * The highest level that commits are told they reached, default `disk`. Nothing survives the process whatever this
   * says; the answer is for tests of what runs above the store.
   */
  durability?: 'none' | 'process' | 'disk';
}

/** Opens an empty store in this process. Every method is atomic; closing it loses everything. */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const clock = options.clock ?? systemClock;
  const reached = options.durability ?? 'disk';
  const runs = new Map<string, MemoryRun>();
  const reservations = new MemoryReservations();
  const structures = new Map<string, string>();
  const feed = new ChangeFeed();
  let created = 0;
  let isClosed = false;

  function check(what: string, ...ids: string[]): void {
    if (isClosed) throw new PawlError('STORE_CLOSED', 'The memory store was closed; open it again.');
    for (const id of ids) checkId(what, id);
  }

  function find(runId: string): MemoryRun | null {
    check('runId', runId);
    return runs.get(runId) ?? null;
  }

  function isDurable(level: Durability): boolean {
    if (typeof level !== 'string') return false;
    return reached === 'disk' || reached === level;
  }

  function done(commit: Commit, run: MemoryRun, kind: 'ok' | 'repeated', nowMs: number): CommitResult {
    return {
      kind,
      inbox: run.inboxAfter(run.position),
      nowMs,
      leaseUntilMs: run.lease?.untilMs ?? null,
      durable: isDurable(commit.durability),
      closed: run.isClosed,
    };
  }

  return {
    kind: 'memory',

    async create(commit) {
      check('runId', commit.runId);
      checkCommit(commit);
      checkFirstCommit(commit);
      const nowMs = clock.nowMs();
      const existing = runs.get(commit.runId);
      if (existing) return { kind: 'exists', run: existing.stored(nowMs) };
      const run = new MemoryRun(commit.runId, ++created);
      run.apply(commit, nowMs);
      runs.set(commit.runId, run);
      feed.emit(commit.runId);
      return { kind: 'created', run: run.stored(nowMs) };
    },

    async load(runId) {
      return find(runId)?.stored(clock.nowMs()) ?? null;
    },

    async accept(runId, event, refused) {
      checkEvent(runId, event);
      const run = find(runId);
      if (!run) return { kind: 'missing' };
      if (run.events.has(event.eventId)) return { kind: 'duplicate', verdict: run.verdict(event.eventId) };
      const nowMs = clock.nowMs();
      if (refused || run.isClosed) {
        const { reason, state } = refused ?? { reason: 'run_final', state: null };
        const verdict: StoredVerdict = { verdict: 'refused', sequence: run.sequence, state, reason };
        run.events.set(event.eventId, JSON.stringify(verdict));
        run.append(refusedEntry(event, verdict, nowMs));
        feed.emit(runId);
        return { kind: 'final', verdict: structuredClone(verdict) };
      }
      checkInboxRoom(runId, event.eventId, run.lastPosition - run.position);
      run.enqueue(event, nowMs);
      run.append(acceptedEntry(event, run.lastPosition, run.sequence, nowMs));
      feed.emit(runId);
      return { kind: 'accepted', position: run.lastPosition };
    },

    async verdict(runId, eventId) {
      return find(runId)?.verdict(eventId) ?? null;
    },

    async claim({ workerId, leaseMs, limit, agents, runIds }) {
      check('workerId', workerId);
      const nowMs = clock.nowMs();
      const named = runIds && new Set(runIds);
      const free = [...runs.values()].filter((run) => {
        if (run.isClosed || run.isLeased(nowMs) || !isOf(run, agents)) return false;
        if (run.isMarked && 'unreadable' in run.rebuild()) return false;
        return named ? named.has(run.runId) : (run.dueAtMs() ?? Infinity) <= nowMs;
      });
      free.sort((a, b) => (a.dueAtMs() ?? Infinity) - (b.dueAtMs() ?? Infinity) || a.number - b.number);
      return free.slice(0, limit).map((run) => take(run, workerId, leaseMs, nowMs));
    },

    async commit(commit) {
      check('runId', commit.runId);
      checkCommit(commit);
      const run = find(commit.runId);
      const nowMs = clock.nowMs();
      if (!run) return { kind: 'missing' };
      if (run.fence !== commit.fence) return { kind: 'stale_fence' };
      if (run.commitId === commit.commitId) return done(commit, run, 'repeated', nowMs);
      if (!run.lease) return { kind: 'stale_fence' };
      if (run.commitId !== commit.after) return { kind: 'stale_sequence' };
      if (run.sequence !== commit.expectedSequence) return { kind: 'stale_sequence' };
      if (run.position !== commit.expectedPosition) return { kind: 'stale_sequence' };
      if ('patch' in commit.record && commit.record.baseDigest !== run.recordDigest) return { kind: 'stale_sequence' };
      const conflict = run.findConflict(commit, nowMs);
      if (conflict) return conflict;
      run.apply(commit, nowMs);
      // Whoever keeps the lease knows what it committed.
      if ('releaseDueAtMs' in commit.lease) feed.emit(commit.runId);
      return done(commit, run, 'ok', nowMs);
    },

    async receive(runId, receipt) {
      checkId('operationId', receipt.operationId);
      const run = find(runId);
      if (!run) return 'missing';
      if (receipt.outcome === 'unknown') return 'same';
      if (receipt.outcome === 'not_executed') {
        if (run.receipts.has(`${receipt.operationId}#${receipt.attempt}`)) return 'same';
      } else {
        const stored = run.terminalReceipt(receipt.operationId);
        if (stored) return stored.outcome === receipt.outcome ? 'same' : 'conflict';
      }
      const nowMs = clock.nowMs();
      run.addReceipt(receipt);
      run.append(receivedEntry(receipt, run.sequence, nowMs));
      if (!run.isClosed) run.enqueue(receiptEvent(receipt), nowMs);
      feed.emit(runId);
      return 'stored';
    },

    async renew(lease, leaseMs, afterPosition) {
      const run = find(lease.runId);
      if (!run?.lease || !run.holdsLease(lease.fence)) return { kind: 'stale_fence' };
      const nowMs = clock.nowMs();
      run.lease.untilMs = nowMs + leaseMs;
      return { kind: 'ok', inbox: run.inboxAfter(afterPosition), nowMs, leaseUntilMs: run.lease.untilMs };
    },

    async release(lease, to) {
      const run = find(lease.runId);
      if (!run?.holdsLease(lease.fence)) return 'stale_fence';
      run.free(to.dueAtMs, clock.nowMs());
      feed.emit(lease.runId);
      return 'ok';
    },

    async markUnreadable(lease, reason) {
      const run = find(lease.runId);
      if (!run?.holdsLease(lease.fence)) return 'stale_fence';
      run.markUnreadable(reason, clock.nowMs());
      feed.emit(lease.runId);
      return 'ok';
    },

    async *read(runId, from = {}) {
      const entries = (find(runId)?.ledger ?? []).map(entryOf);
      const { fromSequence = 0, fromIndex = 0, limit = Infinity } = from;
      yield* entries.filter((e) => e.index >= fromIndex && e.sequence >= fromSequence).slice(0, limit);
    },

    async list(filter) {
      check('list');
      const { limit, before } = checkListFilter(filter);
      const newest = [...runs.values()].filter((run) => run.number < before && matches(run, filter)).toReversed();
      const page = newest.slice(0, limit);
      const cursor = newest.length > limit ? String(page.at(-1)?.number) : null;
      const nowMs = clock.nowMs();
      return { runs: page.map((run) => run.stored(nowMs)), cursor };
    },

    async due(limit) {
      check('due');
      const due = [...runs.values()].flatMap((run) => {
        const dueAtMs = run.dueAtMs();
        const { agent, agentVersion } = run.readSummary();
        return dueAtMs === null ? [] : [{ runId: run.runId, agent, agentVersion, dueAtMs }];
      });
      return due.toSorted((a, b) => a.dueAtMs - b.dueAtMs).slice(0, limit);
    },

    async *receipts(runId) {
      const texts = [...(find(runId)?.receipts.values() ?? [])];
      yield* texts.map(receiptOf).filter(({ outcome }) => outcome !== 'not_executed');
    },

    async receipt(runId, operationId) {
      return find(runId)?.terminalReceipt(operationId) ?? null;
    },

    async audit(runId) {
      const run = find(runId);
      const rebuilt = run?.rebuild();
      if (!run || !rebuilt || 'record' in rebuilt) return [];
      return [{ sequence: run.sequence, what: `record: ${rebuilt.unreadable}` }];
    },

    async erase(runId) {
      if (!find(runId)) return false;
      reservations.forget(runId);
      runs.delete(runId);
      feed.emit(runId);
      return true;
    },

    async reserve(request) {
      check('id', request.tenant, request.runId);
      return reservations.reserve(request);
    },

    async settleReservation(request) {
      check('id', request.tenant, request.runId);
      reservations.settle(request);
      feed.emit(request.runId);
    },

    watch(signal) {
      check('watch');
      return feed.watch(signal);
    },

    async registerStructure(agent, version, structure) {
      check('agent', agent);
      const name = `${agent}@${version}`;
      const stored = structures.get(name) ?? structure;
      structures.set(name, stored);
      return stored;
    },

    async nowMs() {
      check('nowMs');
      return clock.nowMs();
    },

    async close() {
      isClosed = true;
      feed.close();
    },
  };
}

function matches(run: MemoryRun, filter: ListFilter): boolean {
  const summary = run.readSummary();
  const labels = Object.entries(filter.labels ?? {});
  return (
    (filter.agent === undefined || summary.agent === filter.agent) &&
    (filter.status === undefined || summary.status === filter.status) &&
    (filter.tenant === undefined || summary.tenant === filter.tenant) &&
    (filter.state === undefined || summary.states.includes(filter.state)) &&
    labels.every(([name, value]) => Object.hasOwn(summary.labels, name) && summary.labels[name] === value) &&
    (filter.blocked === undefined || filter.blocked === isBlocked(summary))
  );
}

function isBlocked(summary: { status: string; waitingFor: string[] }): boolean {
  return summary.status === 'needs_human' || summary.waitingFor.some((wait) => wait.startsWith('blocked'));
}

function isOf(run: MemoryRun, agents: Record<string, number[]>): boolean {
  const { agent, agentVersion } = run.readSummary();
  return Object.hasOwn(agents, agent) && agents[agent]?.includes(agentVersion) === true;
}

function take(run: MemoryRun, workerId: string, leaseMs: number, nowMs: number): Claim {
  run.isMarked = false;
  run.fence += 1;
  run.lease = { workerId, untilMs: nowMs + leaseMs };
  const lease = { runId: run.runId, workerId, fence: run.fence, untilMs: run.lease.untilMs };
  return { ...run.stored(nowMs), lease, inbox: run.inboxAfter(run.position) };
}
