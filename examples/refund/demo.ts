/** The main job: a batch of vendor refunds by a worker that is killed again and again, judged by the providers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRuntime, openStore, type CrashPoint } from '../../src/index.ts';
import { createRefundAgent } from './agent.ts';
import type { Misbehaviour } from './conduct.ts';
import { readKills } from './crash-plan.ts';
import { placeDemo } from './demo-place.ts';
import { judge, type JudgedRun, type Judgement } from './judge.ts';
import { ordersFor } from './orders.ts';
import { createProgressBar, type TextStream } from './progress-bar.ts';
import { formatReport } from './report.ts';
import { readRows, type RowFile } from './rows.ts';
import { startMailServer, startPaymentServer } from './start-server.ts';
import { LOCAL_PROVIDERS } from './tools.ts';
import { unknownOutcomes, type UnknownOutcome } from './unknown-outcomes.ts';
import { keepWorker, type WorkerKeeper } from './worker-keeper.ts';

export type DemoKill =
  | { kind: 'none' }
  /** From the worker's first claim after each start. */
  | { kind: 'every'; everyMs: number }
  /** In so many different runs per tool. */
  | { kind: 'at'; point: CrashPoint; kills: number };

export interface DemoOptions {
  /** A CSV of vendor refunds; default: the 200 rows that ship. */
  input?: string;
  /** The first rows only. */
  rows?: number;
  /** Default: every 500 ms. */
  kill?: DemoKill;
  /** Of both servers; default `mix`. */
  misbehave?: Misbehaviour;
  /** Whether the servers answer a repeated operation id with its first outcome; the tools then say so. Default true. */
  dedupe?: boolean;
  /** Whether the tools can ask the servers what happened. Default true. */
  reconcile?: boolean;
  /**
   * For the test of the judge: the tools claim that the servers dedupe, and the servers do not. A worker that believes
   * it repeats blindly what it does not know.
   */
  plantBlindRetry?: boolean;
  /** Default 20; 0: all at once. */
  rowsPerSecond?: number;
  /** Default: by chance. */
  seed?: number;
  /** Default: a new SQLite file in the temporary folder. */
  store?: string;
  /** One JSON document on stdout in place of the table. */
  json?: boolean;
}

export interface DemoIo {
  stdout: TextStream;
  /** Progress, the worker's pids and where the store is. */
  stderr: TextStream;
}

const LEASE_MS = 2_000;
/** After this and the time in which the rows come in, what has not ended counts as lost: long, as a machine may be busy. */
const PATIENCE_MS = 600_000;
const POLL_MS = 200;
/** Looking at all runs takes time from the worker, which has little. */
const LOOK_EVERY = 5;

/**
 * Runs the demo and prints its report. Exit code 0: nothing lost or doubled; 1: something was, or a boundary was met
 * less often than asked for; 6: a run needs a person.
 */
export async function runDemo(options: DemoOptions, io: DemoIo): Promise<Judgement> {
  const { kill = { kind: 'every', everyMs: 500 }, misbehave = 'mix', dedupe = true, reconcile = true } = options;
  const { rowsPerSecond = 20, seed = Math.floor(Math.random() * 1_000_000), rows = null } = options;
  const { input, storeUrl, paymentFile, mailFile, killLog } = placeDemo(options);
  const file = readRows(input, rows ?? undefined);
  const startedAtMs = Date.now();
  const bar = createProgressBar(io.stderr);
  const say = (line: string): void => {
    bar.clear();
    io.stderr.write(`${line}\n`);
  };
  say(`seed ${seed}, store ${storeUrl}`);
  say(`misbehave ${misbehave}, dedupe ${dedupe ? 'on' : 'off'}${reconcile ? '' : ', without reconcile'}`);

  const blind = options.plantBlindRetry === true;
  const behaviour = { misbehave, seed, dedupe: dedupe && !blind };
  const [payments, mails] = await Promise.all([
    startPaymentServer({ file: paymentFile, orders: ordersFor(input), ...behaviour }),
    startMailServer({ file: mailFile, ...behaviour }),
  ]);
  const pawl = createRuntime({ agents: [createRefundAgent(LOCAL_PROVIDERS)], store: openStore(storeUrl) });
  const heard = { fed: false, refusedLines: new Set<number>() };
  const keeper = keepWorker({
    settings: {
      store: storeUrl,
      input,
      rows,
      rowsPerSecond,
      startedAtMs,
      ...urlsOf(payments, mails),
      dedupe: dedupe || blind,
      reconcile: reconcile && !blind,
      leaseMs: LEASE_MS,
      crash: kill.kind === 'at' ? { point: kill.point, kills: kill.kills, log: killLog } : null,
    },
    killEveryMs: kill.kind === 'every' ? kill.everyMs : null,
    say,
    heard(message) {
      if (message.kind === 'fed') heard.fed = true;
      if (message.kind === 'refused') heard.refusedLines.add(message.line);
    },
  });

  try {
    const arrivalMs = rowsPerSecond > 0 ? (file.rows.length * 1_000) / rowsPerSecond : 0;
    const deadlineMs = performance.now() + PATIENCE_MS + arrivalMs;
    for (let poll = 1; performance.now() < deadlineMs; poll++) {
      if (keeper.failure !== null) throw new Error(keeper.failure);
      if (heard.fed && (await isIdle(pawl))) break;
      // A store may hold runs of other files, so now and then the runs of this one are looked at.
      if (poll % LOOK_EVERY === 0) {
        const runs = await readRuns(pawl, file);
        if (heard.fed && runs.every(isSettled)) break;
        bar.show(runs.filter(isSettled).length, countOrders(file), `killed ${keeper.kills} times`);
      }
      await sleep(POLL_MS);
    }
    await keeper.stop();
    bar.clear();
    const kills = readKills(killLog);
    const judgement = judge({
      file,
      runs: await readRuns(pawl, file),
      payments: await payments.judge(),
      mails: await mails.judge(),
      kills,
      deaths: keeper.kills,
      unknowns: await readUnknowns(pawl, file, kills),
      wanted: kill.kind === 'at' ? kill : null,
      refusedRows: heard.refusedLines.size,
      seed,
      elapsedMs: Date.now() - startedAtMs,
    });
    io.stdout.write(options.json ? `${JSON.stringify(judgement.report)}\n` : formatReport(judgement, file.bad));
    return judgement;
  } finally {
    bar.clear();
    await stopAll(keeper, [payments, mails], pawl);
  }
}

type Pawl = ReturnType<typeof createRuntime<ReturnType<typeof createRefundAgent>>>;

function urlsOf(payments: { paymentUrl: string }, mails: { smtpUrl: string; mailQueryUrl: string }) {
  return { paymentUrl: payments.paymentUrl, smtpUrl: mails.smtpUrl, mailQueryUrl: mails.mailQueryUrl };
}

async function isIdle(pawl: Pawl): Promise<boolean> {
  for (const status of ['running', 'waiting'] as const) {
    if ((await pawl.list({ agent: 'refund', status, limit: 1 })).runs.length > 0) return false;
  }
  return true;
}

/** The runs of the file's rows, as they are stored. */
async function readRuns(pawl: Pawl, file: RowFile): Promise<JudgedRun[]> {
  const orderIds = new Map(file.rows.map(({ runId, request }) => [runId, request.orderId]));
  const runs: JudgedRun[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<Pawl['list']>> = await pawl.list({
      agent: 'refund',
      limit: 1_000,
      ...(cursor ? { cursor } : {}),
    });
    for (const { runId, status, output, openOperations } of page.runs) {
      const orderId = orderIds.get(runId);
      if (orderId !== undefined) runs.push({ runId, orderId, status, output, openOperations });
    }
    cursor = page.cursor;
  } while (cursor);
  return runs;
}

async function readUnknowns(pawl: Pawl, file: RowFile, kills: Parameters<typeof unknownOutcomes>[1]) {
  const unknowns: UnknownOutcome[] = [];
  const runs = await readRuns(pawl, file);
  for (const { runId } of runs) {
    const entries = [];
    for await (const entry of pawl.history(runId)) entries.push(entry);
    unknowns.push(...unknownOutcomes(entries, kills));
  }
  return unknowns;
}

function isSettled({ status }: JudgedRun): boolean {
  return status !== 'running' && status !== 'waiting';
}

function countOrders(file: RowFile): number {
  return file.rows.filter((row) => row.repeats === null).length;
}

async function stopAll(keeper: WorkerKeeper, servers: { stop(): Promise<void> }[], pawl: Pawl): Promise<void> {
  await keeper.stop();
  await Promise.all(servers.map((server) => server.stop()));
  await pawl.close();
}
