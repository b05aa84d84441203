/** Claims due runs and works them, a bounded number at a time; a poison run holds one place and starves nobody. */
import { WOKEN } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Claim } from '../persistence/store.ts';
import type { AgentRegistry } from './agents.ts';
import type { HeldRunContext } from './held-run-context.ts';
import { HeldRun } from './held-run.ts';

export interface WorkerContext extends HeldRunContext {
  registry: AgentRegistry;
  workerId: string;
  /** How often the due index is looked at when no hint comes. */
  sweepMs: number;
}

export interface Worker {
  readonly workerId: string;
  /**
   * Takes no new run, lets calls under way end within `graceMs` (default 10,000; then they are aborted, and what they
   * did is found out by whoever claims the run next) and gives every lease back.
   */
  stop(options?: { graceMs?: number }): Promise<void>;
}

interface Held {
  runId: string;
  run: HeldRun | null;
  ended: Promise<void>;
}

export class RunWorker implements Worker {
  readonly workerId: string;
  readonly #context: WorkerContext;
  readonly #concurrency: number;
  readonly #held = new Set<Held>();
  readonly #stopping = new AbortController();
  /** Resolves when the worker has been stopped. */
  readonly stopped: Promise<void>;
  #resolveStopped: () => void = () => {};
  readonly #loop: Promise<void>;
  #wake: () => void = () => {};
  #hinted = true;
  /** Monotonic time of the earliest release known to be due again. */
  #nextDueMs = Infinity;

  /** Nothing is claimed before `ready`; while it rejects it is asked for again at each sweep. */
  constructor(context: WorkerContext, concurrency: number, ready: () => Promise<void>) {
    this.#context = context;
    this.workerId = context.workerId;
    this.#concurrency = concurrency;
    this.stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve;
    });
    this.#loop = this.#run(ready);
  }

  /** A run may be due. A run held here looks at its inbox; another makes the worker look at the due index. */
  hint(runId: string): void {
    let here = false;
    for (const held of this.#held) {
      if (held.runId !== runId) continue;
      here = true;
      held.run?.hint();
    }
    if (!here) this.#look();
  }

  /** A run was released and is due again in `dueInMs`. */
  released(dueInMs: number): void {
    if (dueInMs <= 0) return this.#look();
    const atMs = this.#context.clock.monotonicMs() + dueInMs;
    if (atMs >= this.#nextDueMs) return;
    this.#nextDueMs = atMs;
    this.#wake();
  }

  #look(): void {
    this.#hinted = true;
    this.#wake();
  }

  async stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    for (const { run } of this.#held) run?.stop();
    const grace = new AbortController();
    const abort = this.#context.clock.sleep(options.graceMs ?? 10_000, grace.signal).then(() => {
      if (!grace.signal.aborted) for (const { run } of this.#held) run?.abort();
    });
    // A claim under way may still bring runs.
    await Promise.race([this.#loop, abort]);
    await Promise.all([...this.#held].map(({ ended }) => ended));
    grace.abort(WOKEN);
    await abort;
    this.#resolveStopped();
  }

  async #run(ready: () => Promise<void>): Promise<void> {
    const { logger } = this.#context;
    while (!this.#stopping.signal.aborted) {
      const free = this.#concurrency - this.#held.size;
      if (free > 0) {
        this.#hinted = false;
        this.#nextDueMs = Infinity;
        try {
          await ready();
          if ((await this.#claim(free)) === free) continue;
        } catch (error) {
          logger.error('due runs could not be claimed', { error: messageOf(error) });
          this.#hinted = false;
        }
      }
      await this.#waitForSomething();
    }
  }

  /** Waits for a hint while a place is free, for a place, for the next due time, the sweep or the stop. */
  async #waitForSomething(): Promise<void> {
    const { clock, sweepMs } = this.#context;
    const full = this.#held.size >= this.#concurrency;
    if ((this.#hinted && !full) || this.#stopping.signal.aborted) return;
    const waitMs = Math.max(1, Math.min(sweepMs, full ? sweepMs : this.#nextDueMs - clock.monotonicMs()));
    const timer = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await Promise.race([woken, clock.sleep(waitMs, timer.signal)]);
    timer.abort(WOKEN);
    this.#wake = () => {};
  }

  async #claim(limit: number): Promise<number> {
    const { store, registry, leaseMs, clock, workerId } = this.#context;
    const askedMs = clock.monotonicMs();
    const claims = await store.claim({ workerId, leaseMs, limit, agents: registry.versions() });
    for (const claim of claims) this.#hold(claim, askedMs);
    return claims.length;
  }

  #hold(claim: Claim, askedMs: number): void {
    const held: Held = { runId: claim.runId, run: null, ended: Promise.resolve() };
    this.#held.add(held);
    held.ended = workClaim(this.#context, claim, askedMs, (run) => {
      held.run = run;
      if (this.#stopping.signal.aborted) run.stop();
    }).finally(() => {
      this.#held.delete(held);
      this.#look();
    });
  }
}

/** Works one claimed run until its lease is given back or lost. Never rejects: what went wrong is logged. */
export async function workClaim(
  context: WorkerContext,
  claim: Claim,
  askedMs: number,
  holding: (run: HeldRun) => void,
): Promise<void> {
  const { registry, logger, store } = context;
  const { runId } = claim;
  try {
    if (claim.record === null) {
      const reason = claim.unreadable ?? 'its record cannot be read';
      logger.error('a stored record cannot be read; the run needs a human', { runId, reason });
      await store.markUnreadable(claim.lease, reason);
      await context.committed(runId, { dueInMs: null });
      return;
    }
    const agent = registry.find(claim.record.agent, claim.record.agentVersion);
    if (!agent) {
      await store.release(claim.lease, { dueAtMs: claim.nowMs + context.leaseMs });
      return;
    }
    const run = new HeldRun(context, claim, agent, askedMs);
    holding(run);
    await run.work();
  } catch (error) {
    // The lease runs out by itself; whoever claims the run next starts from what is stored.
    logger.error('a run could not be worked and is left to its lease', { runId, error: messageOf(error) });
  }
}
