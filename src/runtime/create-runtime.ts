/** createRuntime: agents and a store, put together. */
import { systemClock, systemIds, WOKEN, type Clock, type Ids } from '../clock.ts';
import { messageOf, PawlError } from '../errors.ts';
import { digestOf, sha256 } from '../json.ts';
import { parseInput, type AgentDefinition } from '../machines/define-agent.ts';
import type { ListFilter, Store } from '../persistence/store.ts';
import type { Durability, Json, LedgerEntry } from '../records.ts';
import type { Policy } from '../tools/policy.ts';
import { AgentRegistry } from './agents.ts';
import { Changes } from './changes.ts';
import type { CrashPoints } from './crash-points.ts';
import { loadRun, sendCommand, sendEvent, type DeliveryContext } from './deliver.ts';
import type { Dispatcher } from './dispatcher.ts';
import { Drives } from './drives.ts';
import { silentLogger, type Logger } from './logger.ts';
import type { Runtime, StartOptions, WaitOptions } from './runtime.ts';
import { firstCommit } from './start-run.ts';
import { checkId } from './ids.ts';
import { resolveOperation, type Resolution } from './resolve.ts';
import { verifyRun } from './verify.ts';
import { viewOf, type RunView } from './view.ts';
import { watchLedger } from './watch-ledger.ts';
import { RunWorker, type WorkerContext } from './worker.ts';

export interface RuntimeOptions<A extends AgentDefinition> {
  agents: readonly A[];
  store: Store;
  dispatcher?: Dispatcher;
  artifacts?: unknown;
  clock?: Clock;
  ids?: Ids;
  logger?: Logger;
  policy?: Policy;
  /** How long a worker owns a run without renewing; 200 ms to 10 minutes. Default 10,000. */
  leaseMs?: number;
  /** How often the due index is looked at when no hint comes. Default 1,000. */
  sweepMs?: number;
  /** What a commit has to reach before a write is called. Default `disk`. */
  durability?: Durability;
  /** For tests: named instants at which the process may be stopped. */
  crashPoints?: CrashPoints;
}

/** How long driven runs have to end when the runtime is closed; a worker's `stop` says it for its own. */
const CLOSE_GRACE_MS = 10_000;

const ALLOW_ALL: Policy = { version: 'none', check: () => ({ allow: true }) };

/**
 * Makes a runtime over a store. Nothing is read or written until the first call.
 *
 * @throws AGENT_DUPLICATE, AGENT_INVALID, CHILDREN_NOT_YET, DECISIONS_NOT_YET, APPROVALS_NOT_YET, INVALID_ARGUMENT
 */
export function createRuntime<A extends AgentDefinition>(options: RuntimeOptions<A>): Runtime<A> {
  return new PawlRuntime(options) as unknown as Runtime<A>;
}

class PawlRuntime {
  readonly #options: RuntimeOptions<AgentDefinition>;
  readonly #registry: AgentRegistry;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #leaseMs: number;
  readonly #durability: Durability;
  readonly #changes: Changes;
  readonly #delivery: DeliveryContext;
  readonly #workers = new Set<RunWorker>();
  readonly #drives = new Drives();
  #ready: Promise<void> | null = null;
  #closed = false;

  constructor(options: RuntimeOptions<AgentDefinition>) {
    this.#options = options;
    this.#registry = new AgentRegistry(options.agents);
    this.#store = options.store;
    this.#clock = options.clock ?? systemClock;
    this.#ids = options.ids ?? systemIds;
    this.#leaseMs = checkWhole('leaseMs', options.leaseMs ?? 10_000, 200, 600_000);
    this.#durability = options.durability ?? 'disk';
    this.#changes = new Changes(this.#store, this.#clock);
    this.#delivery = {
      store: this.#store,
      registry: this.#registry,
      changes: this.#changes,
      ids: this.#ids,
      hint: (runId) => this.#hint(runId),
    };
  }

  async start(name: string, options: StartOptions): Promise<RunView> {
    await this.#open();
    const agent = this.#registry.newest(name);
    const runId = checkId('runId', options.runId ?? this.#ids.next());
    const parsed = parseInput(agent.definition, options.input);
    if (!parsed.ok) {
      throw new PawlError(
        parsed.fault.code as 'INVALID_INPUT' | 'NOT_JSON',
        `Run ${runId} of agent '${name}' was not started: ${parsed.fault.message}.`,
        {
          details: { runId, agent: name },
        },
      );
    }
    const { input } = parsed;
    const { commit } = firstCommit(
      agent,
      {
        runId,
        input,
        tenant: checkId('tenant', options.tenant ?? 'default'),
        createdBy: options.createdBy ?? null,
        deadlineAtMs: options.deadlineAtMs ?? null,
        budget: options.budget ?? agent.definition.budget,
        subject: options.subject ?? null,
        labels: options.labels ?? {},
        traceId: traceIdOf(options.traceparent) ?? sha256(runId).slice(0, 32),
      },
      {
        commitId: this.#ids.next(),
        nowMs: await this.#store.nowMs(),
        policy: this.#options.policy ?? ALLOW_ALL,
        durability: this.#durability,
      },
    );
    await this.#options.crashPoints?.reached('B0', { runId });
    const { kind, run } = await this.#store.create(commit);
    if (kind === 'created') {
      this.#hint(runId);
      return viewOf(run);
    }
    const stored = { agent: run.summary.agent, input: run.record ? digestOf(run.record.input) : 'unreadable' };
    const asked = { agent: name, input: digestOf(input) };
    if (stored.agent === asked.agent && stored.input === asked.input) return viewOf(run);
    const reason = stored.agent === asked.agent ? 'input_mismatch' : 'machine_mismatch';
    throw new PawlError(
      'RUN_EXISTS',
      `Run ${runId} exists with agent '${stored.agent}' and input ${stored.input}; this start has agent '${name}' and input ${asked.input}.`,
      { details: { runId, reason, stored, asked } },
    );
  }

  async send(
    runId: string,
    event: { type: string },
    options: Parameters<typeof sendEvent>[3] = {},
  ): ReturnType<typeof sendEvent> {
    await this.#open();
    return sendEvent(this.#delivery, runId, event, options);
  }

  async view(runId: string): Promise<RunView> {
    await this.#open();
    return viewOf(await loadRun(this.#store, runId));
  }

  async wait(runId: string, options: WaitOptions = {}): Promise<RunView> {
    await this.#open();
    const { until = 'final', timeoutMs = 30_000 } = options;
    let last = viewOf(await loadRun(this.#store, runId));
    const look = async (): Promise<RunView | null> => {
      last = viewOf(await loadRun(this.#store, runId));
      return isReached(last, until) ? last : null;
    };
    return (await this.#changes.until(runId, look, timeoutMs)) ?? timedOut(last, until, timeoutMs);
  }

  async list(filter: ListFilter = {}): Promise<{ runs: RunView[]; cursor: string | null }> {
    await this.#open();
    const { runs, cursor } = await this.#store.list(filter);
    return { runs: runs.map(viewOf), cursor };
  }

  async *history(runId: string, options: { fromSequence?: number } = {}): AsyncGenerator<LedgerEntry> {
    await this.#open();
    await loadRun(this.#store, runId);
    yield* this.#store.read(runId, options);
  }

  async *watch(
    runId: string,
    options: { fromSequence?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<LedgerEntry> {
    await this.#open();
    yield* watchLedger(this.#store, this.#changes, runId, options);
  }

  async cancel(runId: string, options: { by: string; reason: string; waitMs?: number; eventId?: string }) {
    await this.#open();
    return sendCommand(this.#delivery, runId, { kind: 'cancel', reason: options.reason }, options);
  }

  async release(runId: string, options: { by: string; reason: string; waitMs?: number; eventId?: string }) {
    await this.#open();
    return sendCommand(this.#delivery, runId, { kind: 'release', reason: options.reason }, options);
  }

  async resolve(runId: string, operationId: string, resolution: Resolution) {
    await this.#open();
    return resolveOperation(this.#delivery, runId, operationId, resolution);
  }

  async verify(runId: string) {
    await this.#open();
    return verifyRun(this.#store, this.#registry, checkId('runId', runId));
  }

  work(options: { concurrency?: number; leaseMs?: number } = {}): RunWorker {
    const concurrency = checkWhole('concurrency', options.concurrency ?? 64, 1, 10_000);
    const context = this.#workerContext(options.leaseMs ?? this.#leaseMs);
    const worker = new RunWorker(context, concurrency, () => this.#open());
    this.#workers.add(worker);
    const unlisten = this.#changes.listen((runId) => worker.hint(runId));
    void worker.stopped.then(() => {
      unlisten();
      this.#workers.delete(worker);
    });
    return worker;
  }

  async drive(runId: string, options: WaitOptions = {}): Promise<RunView> {
    await this.#open();
    const { until = 'final', timeoutMs = 30_000 } = options;
    const context = this.#workerContext(this.#leaseMs);
    let last = viewOf(await loadRun(this.#store, runId));
    const look = async (): Promise<RunView | null> => {
      await this.#drives.once(context, this.#changes, runId);
      last = viewOf(await loadRun(this.#store, runId));
      return isReached(last, until) ? last : null;
    };
    const timer = new AbortController();
    const late = this.#clock.sleep(timeoutMs, timer.signal).then(() => null);
    const found = await Promise.race([this.#changes.until(runId, look, timeoutMs), late]);
    timer.abort(WOKEN);
    if (found) return found;
    // A call that takes longer than the caller waits ends by itself.
    this.#drives.stop(runId);
    last = viewOf(await loadRun(this.#store, runId));
    return isReached(last, until) ? last : timedOut(last, until, timeoutMs);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const stopped = [...this.#workers].map((worker) => worker.stop());
    await Promise.all([...stopped, this.#drives.close({ clock: this.#clock }, CLOSE_GRACE_MS)]);
    await this.#changes.close();
    await this.#options.dispatcher?.close();
    await this.#store.close();
  }

  #workerContext(leaseMs: number): WorkerContext {
    const { policy = ALLOW_ALL, artifacts = null, logger = silentLogger, sweepMs = 1_000, crashPoints } = this.#options;
    return {
      store: this.#store,
      registry: this.#registry,
      clock: this.#clock,
      ids: this.#ids,
      random: () => Math.random(),
      policy,
      artifacts,
      logger,
      leaseMs,
      sweepMs,
      durability: this.#durability,
      crashPoints,
      workerId: this.#ids.next(),
      committed: (runId, released) => {
        this.#changes.notify(runId);
        if (released === null || released.dueInMs === null) return;
        for (const worker of this.#workers) worker.released(released.dueInMs);
      },
    };
  }

  #hint(runId: string): void {
    this.#changes.hint(runId);
    void this.#dispatch(runId);
  }

  /** A wake-up that is lost costs time, nothing else. */
  async #dispatch(runId: string): Promise<void> {
    const { dispatcher, logger = silentLogger } = this.#options;
    try {
      await dispatcher?.hint(runId);
    } catch (error) {
      logger.warn('a run could not be hinted', { runId, error: messageOf(error) });
    }
  }

  /** Checks, before the first call touches the store, that no registered machine changed under its version. */
  #open(): Promise<void> {
    if (this.#closed) throw new PawlError('STORE_CLOSED', 'The runtime was closed; make a new one.');
    this.#ready ??= this.#checkStructures().catch((error: unknown) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  async #checkStructures(): Promise<void> {
    for (const { definition } of this.#registry.all()) {
      const { name, version, structure } = definition;
      const stored = await this.#store.registerStructure(name, version, structure);
      if (stored === structure) continue;
      throw new PawlError(
        'STRUCTURE_CHANGED',
        `The machine of agent '${name}' version ${version} has structure ${structure.slice(0, 12)}, the store has ${stored.slice(0, 12)}; raise the version.`,
        { details: { agent: name, version, structure, stored } },
      );
    }
  }
}

function isReached(view: RunView, until: NonNullable<WaitOptions['until']>): boolean {
  if (typeof until === 'function') return until(view);
  if (view.status === 'done' || view.status === 'failed' || view.status === 'cancelled') return true;
  return until === 'idle' && view.status !== 'running' && view.inbox.waiting === 0;
}

function timedOut(view: RunView, until: NonNullable<WaitOptions['until']>, timeoutMs: number): never {
  const aim = typeof until === 'function' ? 'what was waited for' : until;
  throw new PawlError(
    'WAIT_TIMEOUT',
    `Run ${view.runId} is ${view.status} and did not become ${aim} within ${timeoutMs} ms.`,
    {
      details: JSON.parse(JSON.stringify(view)) as Json,
    },
  );
}

/** The trace id of a W3C `traceparent`, 32 hex digits. */
function traceIdOf(traceparent: string | undefined): string | null {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent ?? '')?.[1] ?? null;
}

function checkWhole(what: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new PawlError('INVALID_ARGUMENT', `${what} is ${value}; it must be a whole number from ${min} to ${max}.`);
}
