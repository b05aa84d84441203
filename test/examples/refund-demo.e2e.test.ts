import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { DemoOptions } from '../../examples/refund/demo.ts';
import { buildDemo } from './built-demo.ts';
import { newFile } from './servers.ts';

const SHIPPED = fileURLToPath(new URL('../../examples/refund/vendor-refunds.csv', import.meta.url));
const { runDemo } = await buildDemo();

/** Few rows, coming in at once. */
const SMALL: DemoOptions = { input: SHIPPED, rows: 12, rowsPerSecond: 100, json: true };

async function demo(options: DemoOptions, onLine: (line: string) => void = () => undefined) {
  let stdout = '';
  const judgement = await runDemo(
    { ...SMALL, store: `sqlite:${newFile()}`, ...options },
    { stdout: { write: (text) => (stdout += text) }, stderr: { write: onLine } },
  );
  return { ...judgement, stdout };
}

test('twelve rows, the worker killed after the refund and after the mail: nothing lost, nothing twice', async () => {
  const pids: string[] = [];
  const { report, exitCode, stdout } = await demo(
    { misbehave: 'none', dedupe: false, kill: { kind: 'at', point: 'B4', kills: 2 }, seed: 3 },
    (line) => void pids.push(...(/worker pid (\d+)/.exec(line)?.slice(1) ?? [])),
  );
  expect(report).toMatchObject({
    requested: 12,
    invalidRows: 1,
    duplicateRows: 1,
    effects: 9,
    duplicates: 0,
    lost: 0,
    mails: { asked: 9, sent: 9, duplicates: 0, lost: 0 },
    kills: 4,
    boundaries: { B4: 2 },
    runs: { done: 9, declined: 0, review: 1, needs_human: 0, failed: 0 },
    problems: [],
  });
  expect(report.unknowns.filter(({ boundary }) => boundary === 'B4')).toMatchObject([
    { resolution: 'happened' },
    { resolution: 'happened' },
    { resolution: 'happened' },
    { resolution: 'happened' },
  ]);
  expect(exitCode).toBe(0);
  expect(new Set(pids).size).toBe(5);
  expect(JSON.parse(stdout)).toEqual(report);
});

test('killed from outside while everything misbehaves', async () => {
  let left = 4;
  const { report, exitCode } = await demo({ misbehave: 'mix', kill: { kind: 'none' }, seed: 4 }, (line) => {
    const pid = Number(/worker pid (\d+)/.exec(line)?.[1] ?? 0);
    if (pid > 0 && left-- > 0) setTimeout(() => kill(pid), 600 + Math.random() * 600);
  });
  expect(report.problems).toEqual([]);
  expect(report.kills).toBeGreaterThan(0);
  expect(exitCode).toBe(0);
});

test('the check can fail: who can neither ask nor repeat needs a person', async () => {
  const { report, exitCode } = await demo({
    misbehave: 'accept-reset',
    dedupe: false,
    reconcile: false,
    kill: { kind: 'none' },
    seed: 5,
  });
  expect(report).toMatchObject({ duplicates: 0, lost: 0, runs: { needs_human: 9 } });
  expect(exitCode).toBe(6);
});

test('the check can fail: who repeats blindly pays twice', async () => {
  const { report, exitCode } = await demo({
    misbehave: 'mix',
    plantBlindRetry: true,
    kill: { kind: 'none' },
    seed: 6,
  });
  expect(report.duplicates).toBeGreaterThan(0);
  expect(exitCode).toBe(1);
});

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}
