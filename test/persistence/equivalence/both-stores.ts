/** Runs the same calls on two stores and compares every answer, and at the end everything that can be read. */
import assert from 'node:assert/strict';
import { encodeRecord, type WrittenRecord } from '../../../src/persistence/record-text.ts';
import type { Claim, Lease, Store } from '../../../src/persistence/store.ts';
import type { Commit, Receipt, StoredVerdict } from '../../../src/records.ts';
import {
  collect,
  firstCommit,
  sampleEvent,
  sampleRecord,
  sampleSummary,
} from '../../../src/testing/conformance/trial.ts';
import type { MovableClock } from '../movable-clock.ts';
import type { Command, CommitParts, DrawnOperation, DrawnReceipt } from './commands.ts';

const AGENT_CHOICES: Record<string, number[]>[] = [{ refund: [1], other: [1] }, { other: [1] }, { refund: [2] }];
const WITHOUT_CURSOR = { cursor: null };

export class BothStores {
  readonly #reference: Store;
  readonly #other: Store;
  readonly #clock: MovableClock;
  readonly #claims: Claim[] = [];
  readonly #sent: Commit[] = [];
  readonly #written = new Map<string, WrittenRecord>();
  #number = 0;

  constructor(reference: Store, other: Store, clock: MovableClock) {
    this.#reference = reference;
    this.#other = other;
    this.#clock = clock;
  }

  /** Three runs, one of them claimed, so that few calls are about nothing. */
  async begin(): Promise<void> {
    for (const run of [0, 1, 2]) await this.perform({ kind: 'create', run, dueIn: 0, close: false, agent: 0 });
    await this.perform({ kind: 'claim', limit: 2, leaseMs: 500, agents: 0, named: null });
  }

  async perform(command: Command): Promise<void> {
    switch (command.kind) {
      case 'create': {
        const agent = command.agent === 0 ? 'refund' : 'other';
        const runId = `run-${command.run}`;
        const commit = firstCommit(runId, {
          commitId: this.#next('create'),
          summary: sampleSummary({ agent }),
          close: command.close,
          lease: { releaseDueAtMs: this.#due(command.dueIn) },
        });
        const answer = await this.#same((store) => store.create(commit));
        if (answer?.kind === 'created') this.#written.set(runId, encodeRecord(null, sampleRecord(runId), true));
        return;
      }
      case 'accept': {
        const refused = command.isRefused ? { reason: 'forbidden', state: { a: 'b' } } : undefined;
        const event = sampleEvent(`event-${command.event}`);
        await this.#same((store) => store.accept(`run-${command.run}`, event, refused));
        return;
      }
      case 'claim': {
        const { limit, leaseMs, named } = command;
        const request = { workerId: this.#next('w'), leaseMs, limit, agents: AGENT_CHOICES[command.agents] ?? {} };
        const runIds = named === null ? {} : { runIds: [`run-${named}`, 'run-0'] };
        this.#claims.push(...((await this.#same((store) => store.claim({ ...request, ...runIds }))) ?? []));
        return;
      }
      case 'commit':
        return this.#commit(command.held, command.parts);
      case 'commitAgain': {
        const commit = this.#sent.at(-1 - (command.held % this.#sent.length));
        if (commit) await this.#same((store) => store.commit(commit));
        return;
      }
      case 'receive': {
        const receipt = this.#receipt(command.receipt);
        await this.#same((store) => store.receive(`run-${command.run}`, receipt));
        return;
      }
      case 'renew':
        return this.#withLease(command.held, (store, lease) => store.renew(lease, command.leaseMs, command.after));
      case 'release':
        return this.#withLease(command.held, (store, lease) =>
          store.release(lease, { dueAtMs: this.#due(command.dueIn) }),
        );
      case 'markUnreadable':
        return this.#withLease(command.held, (store, lease) => store.markUnreadable(lease, 'said so'));
      case 'advance':
        return this.#clock.advance(command.ms);
      case 'reserve':
      case 'settle': {
        const request = { tenant: 't', key: `k${command.key}`, runId: `run-${command.run}`, intent: command.intent };
        if (command.kind === 'reserve') await this.#same((store) => store.reserve(request));
        else {
          const receipt = command.receipt && this.#receipt(command.receipt);
          await this.#same((store) => store.settleReservation({ ...request, receipt }));
        }
        return;
      }
      case 'erase':
        await this.#same((store) => store.erase(`run-${command.run}`));
        return;
      case 'list': {
        const { limit, blocked, status } = command;
        const filter = { limit, ...(blocked === null ? {} : { blocked }), ...(status === null ? {} : { status }) };
        await this.#same(async (store) => {
          const page = await store.list(filter);
          return { ...page, ...WITHOUT_CURSOR, hasMore: page.cursor !== null };
        });
      }
    }
  }

  /** Everything that can be asked, asked of both. */
  async compareAll(): Promise<void> {
    await this.#same((store) => store.due(10));
    await this.#same(async (store) => ({ ...(await store.list({})), ...WITHOUT_CURSOR }));
    for (const runId of ['run-0', 'run-1', 'run-2']) {
      await this.#same((store) => store.load(runId));
      const entries = await this.#same((store) => collect(store.read(runId)));
      await this.#same((store) => collect(store.read(runId, { fromSequence: 3, limit: 2 })));
      await this.#same((store) => collect(store.receipts(runId)));
      for (const event of ['event-0', 'event-1', 'event-2', 'event-3']) {
        await this.#same((store) => store.verdict(runId, event));
      }
      for (const key of [0, 1]) {
        for (const generation of [1, 2]) {
          await this.#same((store) => store.receipt(runId, operationId({ key, generation })));
        }
      }
      assert.deepEqual(
        entries?.map(({ index }) => index),
        [...(entries ?? []).keys()],
      );
      const problems = await this.#other.audit(runId);
      assert.deepEqual(
        problems.filter(({ what }) => !what.startsWith('record: not JSON')),
        [],
      );
    }
  }

  async #commit(held: number, parts: CommitParts): Promise<void> {
    const claim = this.#claims.at(-1 - (held % this.#claims.length));
    if (!claim) return;
    const { runId } = claim;
    const run = await this.#reference.load(runId);
    if (!run) return;
    const { facts } = run;
    const sequence = facts.sequence + parts.steps;
    const wrong = (mistake: CommitParts['mistake']): number => (parts.mistake === mistake ? 1 : 0);
    const consumed = parts.mistake === 'beyondInbox' ? run.waiting + 1 : Math.min(parts.consumed, run.waiting);
    const record = sampleRecord(runId, { number: ++this.#number, sequence });
    const encoded = encodeRecord(this.#written.get(runId) ?? null, record, parts.record === 'full');
    const base = wrong('base') === 1 ? { baseDigest: 'f'.repeat(64) } : {};
    const receipts = parts.receipts.map((receipt) => this.#receipt(receipt));
    const commit: Commit = {
      ...firstCommit(runId),
      commitId: this.#next('commit'),
      after: wrong('after') === 1 ? 'another' : facts.commitId,
      fence: claim.lease.fence - wrong('fence'),
      expectedSequence: facts.sequence + wrong('sequence'),
      sequence: sequence + wrong('sequence'),
      expectedPosition: facts.position + wrong('position'),
      position: facts.position + wrong('position') + consumed,
      record:
        parts.record === 'garbage'
          ? { full: '{"format":1,' }
          : { ...encoded.text, ...('patch' in encoded.text ? base : {}) },
      summary: sampleSummary({ status: parts.status, agent: run.summary.agent, waitingFor: [parts.status] }),
      keys: parts.keys.map(({ operation, knownAttempts }) => ({
        ...(knownAttempts === undefined ? {} : { attempts: knownAttempts }),
        keyDigest: `key-${operation.key}`,
        operationId: operationId(operation),
        generation: operation.generation,
        inputDigest: 'i',
      })),
      receipts,
      attempts: parts.attempts.map((operation) => ({ operationId: operationId(operation), attempt: 1 })),
      closes: parts.closes.map(({ operation, status }) => ({
        operationId: operationId(operation),
        status,
        attempts: 1,
        inputDigest: 'x',
      })),
      verdicts: parts.verdicts.map((event) => ({
        eventId: `event-${event}`,
        verdict: { verdict: 'applied', sequence, state: null } satisfies StoredVerdict,
      })),
      entries: Array.from({ length: parts.entries }, (_, index) => ({
        sequence: sequence + wrong('sequence'),
        kind: index === 0 ? 'received' : 'emitted',
        atMs: this.#clock.nowMs() + index,
        ...(index === 0 && receipts[0] ? { receipt: receipts[0], operationId: receipts[0].operationId } : {}),
        event: { type: 'DONE', output: receipts.at(-1)?.output ?? null },
      })),
      lease: parts.keepMs === null ? { releaseDueAtMs: this.#due(parts.dueIn) } : { keepMs: parts.keepMs },
      close: parts.close,
      durability: parts.durability,
    };
    this.#sent.push(commit);
    const answer = await this.#same((store) => store.commit(commit));
    if (answer?.kind !== 'ok') return;
    if (parts.record === 'garbage') this.#written.delete(runId);
    else this.#written.set(runId, encoded);
  }

  async #withLease(held: number, call: (store: Store, lease: Lease) => Promise<unknown>): Promise<void> {
    const claim = this.#claims.at(-1 - (held % this.#claims.length));
    if (claim) await this.#same((store) => call(store, claim.lease));
  }

  /** Null when both refuse with the same code. */
  async #same<T>(call: (store: Store) => Promise<T>): Promise<T | null> {
    const [expected, actual] = [await outcomeOf(call(this.#reference)), await outcomeOf(call(this.#other))];
    assert.deepEqual(actual, expected);
    return 'value' in expected ? expected.value : null;
  }

  #receipt(drawn: DrawnReceipt): Receipt {
    const { outcome, attempt } = drawn;
    const output = JSON.parse(JSON.stringify(drawn.output));
    return { operationId: operationId(drawn.operation), attempt, outcome, output, via: 'execute', atMs: 3 };
  }

  #due(dueIn: number | null): number | null {
    return dueIn === null ? null : this.#clock.nowMs() + dueIn;
  }

  #next(prefix: string): string {
    return `${prefix}-${++this.#number}`;
  }
}

function operationId({ key, generation }: DrawnOperation): string {
  return `op_${String(key).repeat(16)}${String(generation).repeat(16)}`;
}

async function outcomeOf<T>(call: Promise<T>): Promise<{ value: T } | { code: unknown }> {
  try {
    return { value: await call };
  } catch (error) {
    if (error instanceof Error && 'code' in error) return { code: error.code };
    throw error;
  }
}
