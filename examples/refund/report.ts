/** The report of a demo for people. */
import type { DemoReport, Judgement } from './judge.ts';
import type { BadRow } from './rows.ts';

export function formatReport({ report, exitCode }: Judgement, bad: BadRow[]): string {
  const { runs, mails } = report;
  const rows: [string, string][] = [
    ['rows', `${report.requested} read, ${report.invalidRows} invalid, ${report.duplicateRows} repeated`],
    [
      'runs',
      Object.entries(runs)
        .map(([outcome, count]) => `${count} ${outcome.replace('_', ' ')}`)
        .join(', '),
    ],
    ['refunds', `${report.effects} at the provider, ${report.duplicates} duplicate, ${report.lost} lost`],
    [
      'mails',
      `${mails.sent} at the server of ${mails.asked} asked for, ${mails.duplicates} duplicate, ${mails.lost} lost`,
    ],
    ['worker', `killed ${report.kills} times with SIGKILL`],
    ...Object.entries(report.boundaries).map(([point]): [string, string] => [
      `at ${point}`,
      Object.entries(report.places)
        .map(([place, count]) => `${count} runs in ${place}`)
        .join(', '),
    ]),
    ['unknown', summariseUnknowns(report.unknowns)],
    ['took', `${(report.elapsedMs / 1_000).toFixed(1)} s, seed ${report.seed}`],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    ...bad.map(({ line, reason }) => `line ${line}: ${reason}`),
    ...(bad.length > 0 ? [''] : []),
    ...rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`),
    '',
    ...report.problems.map((problem) => `! ${problem}`),
    VERDICTS[exitCode],
    '',
  ].join('\n');
}

const VERDICTS = {
  0: 'Nothing lost, nothing paid twice.',
  1: 'NOT as promised.',
  6: 'Nothing lost, nothing paid twice; some runs need a person.',
};

function summariseUnknowns(unknowns: DemoReport['unknowns']): string {
  if (unknowns.length === 0) return 'no outcome was unknown';
  const counts = new Map<string, number>();
  for (const { resolution } of unknowns) counts.set(resolution, (counts.get(resolution) ?? 0) + 1);
  const parts = [...counts].map(([resolution, count]) => `${count} ${resolution.replaceAll('_', ' ')}`);
  return `${unknowns.length} outcomes for a while: ${parts.join(', ')}`;
}
