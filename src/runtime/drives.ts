/** Runs that are worked inside a request, without a standing worker. */
import { WOKEN } from '../clock.ts';
import type { Changes } from './changes.ts';
import type { HeldRun } from './held-run.ts';
import { workClaim, type WorkerContext } from './worker.ts';

interface Driven {
  runId: string;
  run: HeldRun | null;
  ended: Promise<void>;
}

export class Drives {
  readonly #driven = new Set<Driven>();

  /** Works the run until its lease is given back, if it is free. */
  async once(context: WorkerContext, changes: Changes, runId: string): Promise<void> {
    const { store, clock, registry, workerId, leaseMs } = context;
    const askedMs = clock.monotonicMs();
    const agents = registry.versions();
    const [claim] = await store.claim({ workerId, leaseMs, limit: 1, agents, runIds: [runId] });
    if (!claim) return;
    const driven: Driven = { runId, run: null, ended: Promise.resolve() };
    const unlisten = changes.listen((hinted) => {
      if (hinted === runId) driven.run?.hint();
    });
    this.#driven.add(driven);
    driven.ended = workClaim(context, claim, askedMs, (run) => {
      driven.run = run;
    });
    await driven.ended;
    unlisten();
    this.#driven.delete(driven);
  }

  /** No new call is begun for the run (for any run without an id); those under way end, then its lease is given back. */
  stop(runId?: string): void {
    for (const driven of this.#driven) if (runId === undefined || driven.runId === runId) driven.run?.stop();
  }

  /** Stops all; aborts what has not ended after `graceMs`. */
  async close(context: Pick<WorkerContext, 'clock'>, graceMs: number): Promise<void> {
    this.stop();
    const grace = new AbortController();
    const abort = context.clock.sleep(graceMs, grace.signal).then(() => {
      if (!grace.signal.aborted) for (const { run } of this.#driven) run?.abort();
    });
    await Promise.all([...this.#driven].map(({ ended }) => ended));
    grace.abort(WOKEN);
    await abort;
  }
}
