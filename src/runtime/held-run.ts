/**
 * One run under one lease: the loop of DESIGN 3. The same loop is the normal path and the recovery path.
 *
 * Everything here is what the last applied commit said; a draft becomes true only when the store has answered it.
 */
import { WOKEN } from '../clock.ts';
import { isPawlError, messageOf, PawlError } from '../errors.ts';
import { restoreSnapshot } from '../machines/snapshot.ts';
import type { LiveSnapshot } from '../machines/step.ts';
import type { WrittenRecord } from '../persistence/record-text.ts';
import type { Claim, Lease } from '../persistence/store.ts';
import type { Commit, CommitResult, Fault, InboxEvent, RunRecord } from '../records.ts';
import type { RegisteredAgent } from './agents.ts';
import { encodeCommit } from './commit.ts';
import type { CrashPointInfo } from './crash-points.ts';
import { Draft } from './draft.ts';
import { dueAfter, finishDraft } from './finish.ts';
import { chooseItem, hasWorkNow, mayTakeDeferred, nextWakeMs, toReconcile, type Choice } from './choose.ts';
import type { HeldRunContext } from './held-run-context.ts';
import { KnownFacts } from './known-facts.ts';
import { holdBack } from './hold-back.ts';
import { giveReceipts } from './give-receipts.ts';
import { HeldLease } from './held-lease.ts';
import { OpenCalls, operationIdOf, type Ended } from './open-calls.ts';
import { deliverOutbox } from './outbox.ts';
import { infoOf, planOperations } from './plan.ts';
import { faultOfItem, keepItem, reduceAlone } from './reduce-alone.ts';
import { reduceFollowing, reduceItem } from './reduce.ts';
import { sendCommit } from './send-commit.ts';
import { StoreClock } from './store-clock.ts';

/** A renewal that failed is tried again after this long. */
const RENEW_AGAIN_MS = 100;

export class HeldRun {
  readonly runId: string;
  readonly #context: HeldRunContext;
  readonly #agent: RegisteredAgent;
  readonly #lease: Lease;
  readonly #storeClock: StoreClock;
  readonly #calls: OpenCalls;
  readonly #held: HeldLease;
  readonly #facts: KnownFacts;
  #record: RunRecord;
  #written: WrittenRecord | null;
  #snapshot: LiveSnapshot | null = null;
  #sequence: number;
  #position: number;
  #commitId: string;
  #inbox: InboxEvent[];
  #delivered = 0;
  #isCut: boolean;
  #conflicts = 0;
  #stopping = false;
  #mustGo = false;
  #over = false;
  #hinted = false;
  #wake: () => void = () => {};

  constructor(context: HeldRunContext, claim: Claim, agent: RegisteredAgent, askedMs: number) {
    if (claim.record === null) throw new TypeError('an unreadable run cannot be held');
    this.runId = claim.runId;
    this.#context = context;
    this.#agent = agent;
    this.#lease = claim.lease;
    this.#storeClock = new StoreClock(context.clock, claim.nowMs);
    this.#record = claim.record;
    // The first commit under a lease writes the record whole: what was read is then known to be readable.
    this.#written = null;
    this.#sequence = claim.facts.sequence;
    this.#position = claim.facts.position;
    this.#commitId = claim.facts.commitId;
    this.#facts = new KnownFacts(claim.facts.receipts);
    this.#inbox = claim.inbox;
    this.#isCut = mayTakeDeferred(claim.record);
    this.#held = new HeldLease(context.clock, context.leaseMs, askedMs);
    this.#calls = new OpenCalls({
      clock: context.clock,
      crashPoints: context.crashPoints,
      artifacts: context.artifacts,
      nowMs: () => this.#storeClock.nowMs(),
      random: () => context.random(),
      leaseIsAlive: () => this.#held.isAlive(),
      wake: () => this.#wake(),
    });
  }

  /** Works until the lease is given back or lost. Rejects only when the store cannot be reached for long. */
  async work(): Promise<void> {
    try {
      this.#snapshot = restoreSnapshot(this.#agent.definition.durable, this.#record.machine, this.#record.invocations);
    } catch (error) {
      if (!isPawlError(error)) throw error;
      await this.#context.store.markUnreadable(this.#lease, error.message);
      await this.#context.committed(this.runId, { dueInMs: null });
      return;
    }
    try {
      await this.#setApart();
      while (!this.#over) await this.#turn();
    } finally {
      // Whatever went wrong: what comes back from calls under way is a fact.
      await this.#calls.settled();
      await giveReceipts(this.#context, this.runId, this.#calls.hand.splice(0));
    }
  }

  async #turn(): Promise<void> {
    await deliverOutbox(this.#context.store, this.#record, this.#delivered);
    this.#delivered = this.#record.outbox.length;
    const choice = this.#choose();
    if (choice) return this.#advance(choice);
    for (const operation of this.#toReconcile()) this.#reconcile(operation.operationId);
    if (this.#calls.size > 0) return this.#waitForSomething();
    return this.#advance({ item: { kind: 'plan' }, ended: null });
  }

  /** Something may have arrived for the run. */
  hint(): void {
    this.#hinted = true;
    this.#wake();
  }

  /** No new call is started; calls under way end, then the lease is given back. */
  stop(): void {
    this.#stopping = true;
    this.#wake();
  }

  /** Aborts what is under way. What does not end at once is left to whoever claims the run next. */
  abort(): void {
    this.#mustGo = true;
    this.#calls.abortAll();
  }

  async #setApart(): Promise<void> {
    const fruitless = this.#lease.fence - this.#record.committedFence - 1;
    if (!(await holdBack(this.#context, this.runId, fruitless))) return;
    const draft = this.#draft();
    draft.escalate('runaway', { message: `${fruitless} claims ended without a commit; the run may kill its workers.` });
    await this.#commit(draft, null);
  }

  #choose(): Choice | null {
    return chooseItem({
      record: this.#record,
      inbox: this.#inbox,
      receipts: this.#facts.receipts,
      hand: this.#calls.hand,
      calling: this.#calls.operationIds(),
      fence: this.#lease.fence,
      nowMs: this.#storeClock.nowMs(),
      stopping: this.#stopping,
      isCut: this.#isCut,
      delivered: this.#delivered,
      random: () => this.#context.random(),
    });
  }

  #toReconcile(): RunRecord['operations'][string][] {
    if (this.#stopping) return [];
    return toReconcile(this.#record, this.#facts.receipts, this.#calls.operationIds(), this.#storeClock.nowMs());
  }

  #reconcile(operationId: string): void {
    const operation = this.#record.operations[operationId];
    const tool = operation && this.#agent.toolsByName.get(operation.tool);
    if (operation && tool) this.#calls.reconcile(operation, tool, infoOf(this.#record, this.#sequence));
  }

  #draft(): Draft {
    if (!this.#snapshot) throw new TypeError('no snapshot');
    const draft = new Draft(
      {
        agent: this.#agent,
        record: this.#record,
        snapshot: this.#snapshot,
        sequence: this.#sequence,
        position: this.#position,
        fence: this.#lease.fence,
        receipts: this.#facts.receipts,
        known: this.#facts.byKey,
        calling: this.#calls.operationIds(),
      },
      this.#storeClock.nowMs(),
    );
    draft.record.committedFence = this.#lease.fence;
    if (this.#delivered > 0) draft.list('outbox').splice(0, this.#delivered);
    return draft;
  }

  /** An item that cannot be stored as reduced is stored as its fact alone, in the end unreduced, and a person is asked. */
  async #advance(choice: Choice): Promise<void> {
    const random = this.#context.random();
    let fault: Fault | null = null;
    for (const how of ['reduced', 'alone', 'kept'] as const) {
      try {
        const draft = this.#draft();
        if (fault === null) {
          reduceItem(draft, choice.item, random);
          await this.#plan(draft);
        } else if (how === 'alone') reduceAlone(draft, choice.item, fault, random);
        else keepItem(draft, choice.item, fault);
        return await this.#commit(draft, choice.ended);
      } catch (error) {
        fault = faultOfItem(error);
        if (fault === null || how === 'kept') throw error;
      }
    }
  }

  async #plan(draft: Draft): Promise<void> {
    if (this.#stopping) return;
    const { policy, store, clock, leaseMs } = this.#context;
    const context = {
      policy,
      store,
      clock,
      random: () => this.#context.random(),
      nowMs: () => this.#storeClock.nowMs(),
      checksEndMs: clock.monotonicMs() + leaseMs / 3,
    };
    while (await planOperations(draft, context)) reduceFollowing(draft);
  }

  async #commit(draft: Draft, ended: Ended | null): Promise<void> {
    finishDraft(draft);
    const { ids, durability, leaseMs } = this.#context;
    const keep = this.#over ? false : this.#mustKeep(draft, ended);
    const dueMs = dueAfter(draft, this.#stopping);
    const { commit, encoded } = encodeCommit(draft, {
      commitId: ids.next(),
      after: this.#commitId,
      durability,
      lease: keep ? { keepMs: leaseMs } : { releaseDueAtMs: dueMs },
      previous: this.#written,
    });
    const info = this.#crashInfo(ended);
    await this.#beforeCommit(draft, ended);
    const sentMs = this.#context.clock.monotonicMs();
    const result = await sendCommit(this.#context, commit, () => this.#mustGo);
    switch (result.kind) {
      case 'ok':
      case 'repeated':
        this.#applied(draft, commit, ended, result, sentMs);
        this.#written = encoded;
        await this.#afterCommit(
          draft,
          info,
          keep ? null : { dueInMs: dueMs === null ? null : dueMs - this.#storeClock.nowMs() },
        );
        this.#startCalls(draft, result.durable);
        return;
      case 'conflict':
        return this.#conflicted(result);
      default:
        this.#lost(result.kind);
    }
  }

  #mustKeep(draft: Draft, ended: Ended | null): boolean {
    const calls = this.#calls.size + this.#calls.hand.length - (ended ? 1 : 0);
    if (calls > 0 || draft.calls.length > 0 || draft.isCut) return true;
    if (this.#stopping || draft.isIdle) return draft.record.outbox.length > 0;
    if (draft.record.outbox.length > 0 || this.#inbox.some((event) => event.position > draft.position)) return true;
    return hasWorkNow(draft.record, this.#facts.receipts, this.#lease.fence, this.#storeClock.nowMs());
  }

  async #beforeCommit(draft: Draft, ended: Ended | null): Promise<void> {
    const { crashPoints, store } = this.#context;
    const info = this.#crashInfo(ended);
    if (!crashPoints || !info || info.effect === 'read') return;
    await crashPoints.reached('B5', info);
    const receipt = draft.receipts.find(({ outcome }) => outcome === 'succeeded' || outcome === 'failed');
    if (!receipt || crashPoints.wantsB6?.(info) !== true) return;
    await store.receive(this.runId, receipt);
    await crashPoints.reached('B6', info);
  }

  async #afterCommit(
    draft: Draft,
    info: CrashPointInfo | null,
    released: { dueInMs: number | null } | null,
  ): Promise<void> {
    for (const log of draft.logs) this.#context.logger.info('machine log', { runId: this.runId, ...log });
    const { crashPoints } = this.#context;
    if (info) await crashPoints?.reached('B7', info);
    await this.#context.committed(this.runId, released);
    if (info) await crashPoints?.reached('B8', info);
  }

  /** Whose answer a commit carries, by execute or reconcile; null when nobody wants to know. */
  #crashInfo(ended: Ended | null): (CrashPointInfo & { effect: 'read' | 'write' }) | null {
    if (!ended || !this.#context.crashPoints) return null;
    const operationId = operationIdOf(ended);
    const operation = this.#record.operations[operationId];
    if (!operation) return null;
    return {
      runId: this.runId,
      operationId,
      tool: operation.tool,
      effect: operation.kind === 'write' ? 'write' : 'read',
    };
  }

  #applied(
    draft: Draft,
    commit: Commit,
    ended: Ended | null,
    result: CommitResult & { kind: 'ok' | 'repeated' },
    sentMs: number,
  ): void {
    this.#record = draft.record;
    this.#snapshot = draft.snapshot;
    this.#sequence = commit.sequence;
    this.#position = commit.position;
    this.#commitId = commit.commitId;
    this.#inbox = result.inbox;
    this.#delivered = 0;
    this.#isCut = draft.isCut;
    this.#conflicts = 0;
    this.#storeClock.sync(result.nowMs);
    this.#held.renewed(sentMs);
    if (ended) this.#calls.hand.splice(this.#calls.hand.indexOf(ended), 1);
    for (const [key, operation] of draft.learned) this.#facts.learn(key, operation);
    this.#facts.forget(commit.closes);
    for (const operationId of draft.aborts) this.#calls.abort(operationId);
    if (!('keepMs' in commit.lease)) this.#over = true;
  }

  #startCalls(draft: Draft, durable: boolean): void {
    for (const planned of draft.calls) {
      const operation = this.#record.operations[planned.operationId];
      const tool = operation && this.#agent.toolsByName.get(operation.tool);
      if (!operation || !tool) continue;
      const refusal =
        durable || tool.effect === 'read' ? null : 'its intent did not reach the durability that was asked for';
      this.#calls.execute(planned, operation, tool, infoOf(this.#record, this.#sequence), refusal);
    }
  }

  /** Another outcome, attempt or owner is stored: its facts are taken and the same item is reduced again. */
  async #conflicted(result: CommitResult & { kind: 'conflict' }): Promise<void> {
    const { stored, operationId } = result;
    this.#storeClock.sync(result.nowMs);
    this.#inbox = result.inbox;
    this.#facts.take(result);
    if (stored.receipt && result.on === 'receipt') this.#calls.contradict(operationId, stored.receipt);
    this.#conflicts++;
    this.#context.logger.info('a commit met a stored fact', { runId: this.runId, on: result.on, operationId });
    if (this.#conflicts < 20) return;
    throw new PawlError(
      'STORE_CORRUPT',
      `Run ${this.runId} meets the same ${result.on} conflict at ${operationId} again and again.`,
    );
  }

  async #waitForSomething(): Promise<void> {
    const { clock } = this.#context;
    const controller = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wake = () => {
        controller.abort(WOKEN);
        resolve();
      };
    });
    if (this.#calls.hand.length > 0 || this.#hinted) this.#wake();
    const wakeAtMs = nextWakeMs(this.#record, this.#calls.operationIds(), this.#stopping);
    const itemInMs = wakeAtMs - this.#storeClock.nowMs();
    await Promise.race([
      woken,
      clock.sleep(Math.max(1, Math.min(this.#held.renewInMs(), itemInMs)), controller.signal),
    ]);
    controller.abort(WOKEN);
    this.#wake = () => {};
    if (this.#calls.hand.length === 0 && (this.#hinted || this.#held.renewInMs() <= 1)) await this.#renew();
  }

  async #renew(): Promise<void> {
    const { clock, leaseMs, store, logger } = this.#context;
    this.#hinted = false;
    const askedMs = clock.monotonicMs();
    try {
      const result = await store.renew(this.#lease, leaseMs, this.#position);
      if (result.kind === 'stale_fence') return this.#lost(result.kind);
      this.#inbox = result.inbox;
      this.#storeClock.sync(result.nowMs);
      this.#held.renewed(askedMs);
    } catch (error) {
      logger.warn('a lease could not be renewed', { runId: this.runId, error: messageOf(error) });
      this.#held.postpone(RENEW_AGAIN_MS);
    }
  }

  /** Another worker has the run. What is under way ends by itself, and its receipts are given to the store. */
  #lost(answer: string): void {
    this.#context.logger.warn('the lease of a run was lost', { runId: this.runId, answer });
    this.#over = true;
  }
}
