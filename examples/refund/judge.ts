/** The verdict on a demo: the servers' own counts against what the runs say of themselves. */
import { countKills, type Kill, type Place } from './crash-plan.ts';
import type { MailJudgement } from './mail-box.ts';
import type { RefundOutput } from './machine.ts';
import type { PaymentJudgement } from './payment-ledger.ts';
import type { RowFile } from './rows.ts';
import type { UnknownOutcome } from './unknown-outcomes.ts';

/** What the judge has to know of a run. */
export interface JudgedRun {
  runId: string;
  orderId: string;
  status: 'running' | 'waiting' | 'needs_human' | 'done' | 'failed' | 'cancelled';
  output: RefundOutput | null;
  /** Operations that a person is asked about. */
  openOperations: { operationId: string; tool: string }[];
}

export interface Evidence {
  file: RowFile;
  runs: JudgedRun[];
  payments: PaymentJudgement;
  mails: MailJudgement;
  kills: Kill[];
  /** Deaths of the worker by SIGKILL, from whomever. */
  deaths: number;
  unknowns: UnknownOutcome[];
  /** The boundary that was to be met, and how often. */
  wanted: { point: Kill['point']; kills: number } | null;
  /** Rows that were refused at the start, because their order has a run of another content. */
  refusedRows: number;
  seed: number;
  elapsedMs: number;
}

export interface DemoReport {
  requested: number;
  invalidRows: number;
  duplicateRows: number;
  effects: number;
  /** Orders with more than one effect at the provider. */
  duplicates: number;
  lost: number;
  mails: { asked: number; sent: number; duplicates: number; lost: number };
  kills: number;
  /** In how many different runs a boundary was met; of its places the least. */
  boundaries: Record<string, number>;
  places: Partial<Record<Place, number>>;
  unknowns: UnknownOutcome[];
  runs: { done: number; declined: number; review: number; needs_human: number; failed: number };
  /** Each loss and duplicate in words. */
  problems: string[];
  seed: number;
  elapsedMs: number;
}

export interface Judgement {
  report: DemoReport;
  exitCode: 0 | 1 | 6;
}

export function judge(evidence: Evidence): Judgement {
  const { file, runs, payments, mails, wanted } = evidence;
  const refunds = countBy(payments.refunds);
  const notices = countBy(mails.mails);
  const byId = new Map(runs.map((run) => [run.runId, run]));
  const orders = file.rows.filter((row) => row.repeats === null);

  const lostRefunds = orders.flatMap(({ runId, request: { orderId } }) => {
    const why = lossOf(byId.get(runId), refunds.get(orderId) ?? 0);
    return why ? [`refund of ${orderId} (${runId}): ${why}`] : [];
  });
  const lostMails = runs.flatMap((run) => {
    const why = mailLossOf(run, notices.get(run.orderId) ?? 0);
    return why ? [`mail for ${run.orderId} (${run.runId}): ${why}`] : [];
  });
  const met = wanted ? countKills(evidence.kills, wanted.point) : new Map<Place, number>();
  const short = [...met].filter(([, count]) => count < (wanted?.kills ?? 0));

  const report: DemoReport = {
    requested: file.read,
    invalidRows: file.bad.length + evidence.refusedRows,
    duplicateRows: file.rows.length - orders.length,
    effects: payments.effects,
    duplicates: payments.duplicates.length,
    lost: lostRefunds.length,
    mails: {
      asked: runs.filter((run) => run.output?.outcome === 'done' || isOpen(run, 'mail.notify')).length,
      sent: mails.effects,
      duplicates: mails.duplicates.length,
      lost: lostMails.length,
    },
    kills: evidence.deaths,
    boundaries: wanted ? { [wanted.point]: Math.min(...met.values()) } : {},
    places: Object.fromEntries(met),
    unknowns: evidence.unknowns,
    runs: countRuns(runs),
    problems: [
      ...payments.duplicates.map(({ orderId, effects }) => `order ${orderId} was refunded ${effects} times`),
      ...mails.duplicates.map(({ orderId, effects }) => `the vendor of ${orderId} got ${effects} mails`),
      ...lostRefunds,
      ...lostMails,
      ...short.map(([place, count]) => `${wanted?.point} was met in ${count} runs in ${place}, not ${wanted?.kills}`),
    ],
    seed: evidence.seed,
    elapsedMs: evidence.elapsedMs,
  };
  return { report, exitCode: report.problems.length > 0 ? 1 : report.runs.needs_human > 0 ? 6 : 0 };
}

/** Why a valid row is lost, or null: it ended, and the provider's count agrees with how; or a person is asked about it. */
function lossOf(run: JudgedRun | undefined, effects: number): string | null {
  if (!run) return 'it has no run';
  if (run.status === 'needs_human') return run.openOperations.length > 0 ? null : 'nobody is told what to look at';
  if (run.status !== 'done' || !run.output) return `its run is ${run.status}`;
  const { outcome, refundId } = run.output;
  if (outcome === 'done' && effects === 0) return 'it is done without effect';
  if (refundId === null && effects > 0) return `it is in ${outcome} as not refunded, and the money has moved`;
  if (refundId !== null && effects === 0) return `it is in ${outcome} as refunded, and no money has moved`;
  return null;
}

function mailLossOf(run: JudgedRun, sent: number): string | null {
  if (run.status !== 'done' || !run.output) return null;
  if (run.output.notified && sent === 0) return 'it counts as sent, and no mail came';
  if (!run.output.notified && sent > 0) return 'it counts as not sent, and a mail came';
  return null;
}

function isOpen(run: JudgedRun, tool: string): boolean {
  return run.openOperations.some((operation) => operation.tool === tool);
}

function countRuns(runs: JudgedRun[]): DemoReport['runs'] {
  const counts = { done: 0, declined: 0, review: 0, needs_human: 0, failed: 0 };
  for (const { status, output } of runs) {
    if (status === 'needs_human') counts.needs_human += 1;
    else if (status === 'done' && output && output.outcome !== 'open') counts[output.outcome] += 1;
    else counts.failed += 1;
  }
  return counts;
}

function countBy(effects: { orderId: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { orderId } of effects) counts.set(orderId, (counts.get(orderId) ?? 0) + 1);
  return counts;
}
