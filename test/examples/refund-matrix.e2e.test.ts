/**
 * Every boundary and the random kills, each with another misbehaviour, in both dedupe modes: ten cells a run of the
 * tests. The seed shifts the diagonal, so that ten seeds meet all pairs; `npm run chaos` runs every cell with all rows.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CRASH_POINTS } from '../../examples/refund/crash-plan.ts';
import { buildDemo } from './built-demo.ts';
import { newFile } from './servers.ts';

const SHIPPED = fileURLToPath(new URL('../../examples/refund/vendor-refunds.csv', import.meta.url));
const KILLS = [...CRASH_POINTS, 'every-300'] as const;
const MISBEHAVIOURS = [
  ...(['none', 'refuse', 'accept-timeout', 'accept-reset', 'slow', 'late'] as const),
  ...(['error-500', 'query-down', 'wrong-amount', 'mix'] as const),
];
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1_000_000));
process.stdout.write(`refund matrix seed ${seed}\n`);

const cells = KILLS.map((kill, index) => ({
  kill,
  misbehave: MISBEHAVIOURS[(index + seed) % MISBEHAVIOURS.length] as (typeof MISBEHAVIOURS)[number],
  dedupe: (index + Math.floor(seed / MISBEHAVIOURS.length)) % 2 === 0,
}));

const { runDemo } = await buildDemo();

describe('twelve rows', () => {
  // Two at a time, one per core.
  const pairs = Array.from({ length: cells.length / 2 }, (_, index) => cells.slice(index * 2, index * 2 + 2));
  test.each(
    pairs.map(
      (pair) =>
        [pair.map((cell) => `${cell.kill} ${cell.misbehave} ${cell.dedupe ? 'on' : 'off'}`).join(' | '), pair] as const,
    ),
  )(
    'nothing lost, nothing twice: %s',
    async (_name, pair) => {
      await Promise.all(
        pair.map(async ({ kill, misbehave, dedupe }) => {
          const { report, exitCode } = await runDemo(
            {
              input: SHIPPED,
              rows: 12,
              rowsPerSecond: 100,
              json: true,
              store: `sqlite:${newFile()}`,
              seed,
              misbehave,
              dedupe,
              kill: kill === 'every-300' ? { kind: 'every', everyMs: 300 } : { kind: 'at', point: kill, kills: 2 },
            },
            { stdout: { write: () => undefined }, stderr: { write: () => undefined } },
          );
          expect(report, `${kill} ${misbehave} ${dedupe}`).toMatchObject({
            requested: 12,
            duplicates: 0,
            lost: 0,
            mails: { duplicates: 0, lost: 0 },
            runs: { needs_human: 0, failed: 0 },
            problems: [],
          });
          if (kill !== 'every-300') expect(report.boundaries[kill]).toBeGreaterThanOrEqual(2);
          expect(exitCode).toBe(0);
        }),
      );
    },
    60_000,
  );
});
