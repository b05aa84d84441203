/** Program: reads the file, starts one run per row and works the runs, until it is told to stop or is killed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime, isPawlError, openStore, type Store, type Worker } from '../../src/index.ts';
import { createRefundAgent } from './agent.ts';
import { createCrashPlan } from './crash-plan.ts';
import { callProvider } from './provider-call.ts';
import { readRows, type RefundRow } from './rows.ts';
import { workerSettings, type WorkerMessage } from './worker-settings.ts';

/**
 * A worker that is killed every 300 ms must get some runs further in that time. If it took all that are due at once, on
 * a busy machine it would get none of them further; so it begins with a few, and takes more when it lives longer.
 */
const CONCURRENCY = { atFirst: 4, afterMs: 200, more: 12 };
/** The server greets after 100 ms; a worker that lives for 300 must not wait for it. */
const MAIL_SOCKETS_AHEAD = 4;
/** Beyond the calls under way there is nothing to wait for. */
const STOP_WITHIN_MS = 5_000;

const settings = workerSettings.parse(JSON.parse(process.argv[2] ?? 'null'));
const plan = settings.crash ? createCrashPlan(settings.crash) : null;
/** Runs that exist: starting one of them again is no boundary. */
const known = new Set<string>();

const store = openStore(settings.store);
announceFirstClaim(store);
const pawl = createRuntime({
  agents: [
    createRefundAgent({
      ...settings,
      mailSocketsAhead: MAIL_SOCKETS_AHEAD,
      ...(plan ? { crashHoldMs: plan.holdMs } : {}),
    }),
  ],
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
const workers: Worker[] = [];
for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.once(signal, () => void stop());
// The parent may be gone before anybody listened.
if (process.send && !process.connected) await stop();

// What has to be loaded is loaded before the first claim: the time until the next kill is for the runs.
await learnKnownRuns();
await callProvider(`${settings.paymentUrl}/orders/none`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
workers.push(pawl.work({ concurrency: CONCURRENCY.atFirst }));
setTimeout(() => {
  if (!stopping.signal.aborted) workers.push(pawl.work({ concurrency: CONCURRENCY.more }));
}, CONCURRENCY.afterMs);
await feed();

/** One run per row, at the rate of the file; a row whose time is over already is started at once. */
async function feed(): Promise<void> {
  const { rows } = readRows(settings.input, settings.rows ?? undefined);
  for (const [at, row] of rows.entries()) {
    if (row.repeats === null && known.has(row.runId)) continue;
    const dueInMs = settings.startedAtMs + arrivalMs(at) - Date.now();
    if (dueInMs > 0) await sleep(dueInMs, null, { signal: stopping.signal }).catch(() => undefined);
    if (stopping.signal.aborted) return;
    await start(row);
    known.add(row.runId);
  }
  tell({ kind: 'fed' });
}

function arrivalMs(row: number): number {
  return settings.rowsPerSecond > 0 ? (row * 1_000) / settings.rowsPerSecond : 0;
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
  setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
  stopping.abort();
  await Promise.all(workers.map((worker) => worker.stop({ graceMs: 1_500 })));
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
