import { describe, expect, test } from 'vitest';
import { countKills, placesOf, type Kill } from '../../examples/refund/crash-plan.ts';
import { judge, type Evidence, type JudgedRun } from '../../examples/refund/judge.ts';
import type { RefundOutput } from '../../examples/refund/machine.ts';
import { formatReport } from '../../examples/refund/report.ts';
import { COLUMNS, parseRows } from '../../examples/refund/rows.ts';
import { unknownOutcomes } from '../../examples/refund/unknown-outcomes.ts';
import type { LedgerEntry } from '../../src/records.ts';

const FILE = parseRows(
  [COLUMNS.join(','), 'R-1,Nordwind,a@b.example,PO-1,50.00,EUR,damaged', 'R-2,Nordwind,a@b.example,PO-2,,EUR,x'].join(
    '\n',
  ),
);
const DONE: RefundOutput = { outcome: 'done', orderId: 'PO-1', refundId: 're_1', notified: true, reason: '' };

const runOf = (change: Partial<JudgedRun> = {}): JudgedRun => ({
  runId: 'refund:PO-1',
  orderId: 'PO-1',
  status: 'done',
  output: DONE,
  openOperations: [],
  ...change,
});

function judged(runs: JudgedRun[], counts: { refunds?: number; mails?: number } = {}, change: Partial<Evidence> = {}) {
  const { refunds = 1, mails = 1 } = counts;
  const refund = { refundId: 're', operationId: 'op', orderId: 'PO-1', amountCents: 5_000, currency: 'EUR', atMs: 1 };
  const mail = { messageId: '<m>', orderId: 'PO-1', recipient: 'a@b.example', sizeBytes: 1, receivedAtMs: 1 };
  const twice = (effects: number) => (effects > 1 ? [{ orderId: 'PO-1', effects }] : []);
  return judge({
    file: FILE,
    runs,
    payments: {
      effects: refunds,
      duplicates: twice(refunds),
      refunds: Array.from({ length: refunds }, () => refund),
      pending: 0,
    },
    mails: { effects: mails, duplicates: twice(mails), mails: Array.from({ length: mails }, () => mail), pending: 0 },
    kills: [],
    deaths: 3,
    unknowns: [],
    wanted: null,
    refusedRows: 0,
    seed: 7,
    elapsedMs: 1_000,
    ...change,
  });
}

test('a run that is done with one refund and one mail is all right', () => {
  expect(judged([runOf()])).toMatchObject({
    exitCode: 0,
    report: {
      requested: 2,
      invalidRows: 1,
      duplicateRows: 0,
      effects: 1,
      duplicates: 0,
      lost: 0,
      mails: { asked: 1, sent: 1, duplicates: 0, lost: 0 },
      kills: 3,
      runs: { done: 1, declined: 0, review: 0, needs_human: 0, failed: 0 },
    },
  });
});

describe('what the judge calls a loss or a duplicate', () => {
  const declined: RefundOutput = { ...DONE, outcome: 'declined', refundId: null, notified: false };
  test.each<[string, JudgedRun[], { refunds?: number; mails?: number }, object]>([
    ['two refunds of one order', [runOf()], { refunds: 2 }, { duplicates: 1, lost: 0 }],
    ['two mails for one order', [runOf()], { mails: 2 }, { mails: { asked: 1, sent: 2, duplicates: 1, lost: 0 } }],
    ['a row without a run', [], { refunds: 0, mails: 0 }, { lost: 1 }],
    ['a run that never ended', [runOf({ status: 'waiting', output: null })], { refunds: 0, mails: 0 }, { lost: 1 }],
    ['a run that failed', [runOf({ status: 'failed', output: null })], { mails: 0 }, { lost: 1 }],
    ['done as refunded, without effect', [runOf()], { refunds: 0 }, { lost: 1 }],
    ['done as not refunded', [runOf({ output: { ...DONE, refundId: null } })], { refunds: 0 }, { lost: 1 }],
    ['declined, and the money has moved', [runOf({ output: declined })], { mails: 0 }, { lost: 1 }],
    [
      'a mail that counts as sent and did not come',
      [runOf()],
      { mails: 0 },
      { mails: { asked: 1, sent: 0, duplicates: 0, lost: 1 } },
    ],
    [
      'a person who is not told what to look at',
      [runOf({ status: 'needs_human', output: null })],
      { mails: 0 },
      { lost: 1 },
    ],
  ])('%s', (_, runs, counts, expected) => {
    const { report, exitCode } = judged(runs, counts);
    expect(report).toMatchObject(expected);
    expect(report.problems).toHaveLength(1);
    expect(exitCode).toBe(1);
  });

  test('neither a declined row without effect nor one in review with its refund named is lost', () => {
    expect(judged([runOf({ output: declined })], { refunds: 0, mails: 0 }).exitCode).toBe(0);
    const review: RefundOutput = { ...DONE, outcome: 'review', notified: false };
    expect(judged([runOf({ output: review })], { mails: 0 }).exitCode).toBe(0);
  });

  test('a run that needs a person for a named operation is exit code 6', () => {
    const openOperations = [{ operationId: 'op', tool: 'payments.refund' }];
    const run = runOf({ status: 'needs_human', output: null, openOperations });
    expect(judged([run], { mails: 0 })).toMatchObject({ exitCode: 6, report: { lost: 0, runs: { needs_human: 1 } } });
  });
});

describe('a boundary', () => {
  const kill = (place: Kill['place'], runId: string): Kill => ({
    point: 'B4',
    place,
    runId,
    operationId: 'op',
    pid: 1,
    atMs: 1,
  });
  const kills = [
    kill('payments.refund', 'a'),
    kill('payments.refund', 'a'),
    kill('payments.refund', 'b'),
    kill('mail.notify', 'a'),
  ];

  test('is counted in different runs, per tool', () => {
    expect(Object.fromEntries(countKills(kills, 'B4'))).toEqual({ 'payments.refund': 2, 'mail.notify': 1 });
    expect([placesOf('B0'), placesOf('B1')]).toEqual([['rows'], ['reads']]);
  });

  test('met less often than asked for is a failure', () => {
    expect(judged([runOf()], {}, { kills, wanted: { point: 'B4', kills: 1 } })).toMatchObject({
      exitCode: 0,
      report: { boundaries: { B4: 1 } },
    });
    const short = judged([runOf()], {}, { kills, wanted: { point: 'B4', kills: 2 } });
    expect(short).toMatchObject({
      exitCode: 1,
      report: { boundaries: { B4: 1 }, problems: ['B4 was met in 1 runs in mail.notify, not 2'] },
    });
    expect(formatReport(short, FILE.bad)).toContain('2 runs in payments.refund, 1 runs in mail.notify');
  });
});

test('unknown outcomes are read from the ledger with where they came from and how they were found out', () => {
  let index = 0;
  const entry = (kind: LedgerEntry['kind'], operationId: string, fields: object = {}): LedgerEntry => ({
    runId: 'r',
    index: index++,
    sequence: 1,
    atMs: 1,
    kind,
    operationId,
    ...fields,
  });
  const entries = [
    entry('received', 'known', { outcome: 'succeeded', via: 'execute' }),
    entry('received', 'silent', { outcome: 'unknown', via: 'execute' }),
    entry('reconciled', 'silent', { answer: 'unknown' }),
    entry('reconciled', 'silent', { answer: 'happened' }),
    entry('received', 'silent', { outcome: 'succeeded', via: 'reconcile' }),
    entry('reconciled', 'killed', { answer: 'absent' }),
    entry('received', 'killed', { outcome: 'succeeded', via: 'execute' }),
    entry('received', 'again', { outcome: 'unknown', via: 'execute' }),
    entry('received', 'again', { outcome: 'succeeded', via: 'execute' }),
    entry('received', 'stuck', { outcome: 'unknown', via: 'execute' }),
    entry('escalated', 'stuck', { reason: 'unknown_exhausted' }),
  ];
  const kills: Kill[] = [{ point: 'B3', place: 'mail.notify', runId: 'r', operationId: 'killed', pid: 1, atMs: 1 }];
  expect(unknownOutcomes(entries, kills)).toEqual([
    { operationId: 'silent', boundary: 'unanswered', resolution: 'happened' },
    { operationId: 'killed', boundary: 'B3', resolution: 'did_not_happen' },
    { operationId: 'again', boundary: 'unanswered', resolution: 'repeated' },
    { operationId: 'stuck', boundary: 'unanswered', resolution: 'needs_human' },
  ]);
});
