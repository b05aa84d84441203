/** Program: reads the file, starts one run per row and works the runs, until it is told to stop or is killed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime, isPawlError, openStore, type Store } from '../../src/index.ts';
import { createRefundAgent } from './agent.ts';
import { createCrashPlan } from './crash-plan.ts';
import { readRows, type RefundRow } from './rows.ts';
import { workerSettings, type WorkerMessage } from './worker-settings.ts';

const settings = workerSettings.parse(JSON.parse(process.argv[2] ?? 'null'));
const plan = settings.crash ? createCrashPlan(settings.crash) : null;
/** Runs that exist: starting one of them again is no boundary. */
const known = new Set<string>();

const store = openStore(settings.store);
announceFirstClaim(store);
const pawl = createRuntime({
  agents: [createRefundAgent({ ...settings, ...(plan ? { crashHoldMs: plan.holdMs } : {}) })],
  store,
  leaseMs: settings.leaseMs,
  sweepMs: 250,
  logger: { info: () => undefined, warn: () => undefined, error: complain },
  ...(plan
    ? {
        crashPoints: {
          ...plan.crashPoints,
          reached: (point, info) =>
            point === 'B0' && known.has(info.runId) ? undefined : plan.crashPoints.reached(point, info),
        },
      }
    : {}),
});

const stopping = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.once(signal, () => void stop());

const worker = pawl.work();
await feed();

/** One run per row, at the rate of the file; a row whose time is over already is started at once. */
async function feed(): Promise<void> {
  await learnKnownRuns();
  const { rows } = readRows(settings.input, settings.rows ?? undefined);
  for (const [at, row] of rows.entries()) {
    if (row.repeats === null && known.has(row.runId)) continue;
    const dueInMs = settings.startedAtMs + (at * 1_000) / settings.rowsPerSecond - Date.now();
    if (dueInMs > 0) await sleep(dueInMs, null, { signal: stopping.signal }).catch(() => undefined);
    if (stopping.signal.aborted) return;
    await start(row);
    known.add(row.runId);
  }
  tell({ kind: 'fed' });
}

async function start({ runId, request, line }: RefundRow): Promise<void> {
  try {
    await pawl.start('refund', { runId, input: request });
  } catch (error) {
    if (!isPawlError(error, 'RUN_EXISTS')) throw error;
    tell({ kind: 'refused', line, reason: error.message });
  }
}

async function learnKnownRuns(): Promise<void> {
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof pawl.list>> = await pawl.list({
      agent: 'refund',
      limit: 1_000,
      ...(cursor ? { cursor } : {}),
    });
    for (const { runId } of page.runs) known.add(runId);
    cursor = page.cursor;
  } while (cursor);
}

async function stop(): Promise<void> {
  stopping.abort();
  await worker.stop({ graceMs: 1_500 });
  await pawl.close();
  process.exit(0);
}

function announceFirstClaim(watched: Store): void {
  const claim = watched.claim.bind(watched);
  watched.claim = async (request) => {
    const claims = await claim(request);
    if (claims.length > 0) {
      watched.claim = claim;
      tell({ kind: 'claimed' });
    }
    return claims;
  };
}

function tell(message: WorkerMessage): void {
  if (process.connected) process.send?.(message);
}

function complain(message: string, fields: object = {}): void {
  process.stderr.write(`worker ${process.pid}: ${message} ${JSON.stringify(fields)}\n`);
}
