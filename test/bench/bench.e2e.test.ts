import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** As little as it can do: what is measured means nothing, but all of it is measured. */
const TINY = ['--json', '--runs', '2', '--steps', '4', '--rounds', '1', '--history', '20'];

function bench(...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['bench/main.mjs', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, NODE_ENV: 'production' },
  });
  return { stdout, stderr, status };
}

const positive = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0);

test('the bench prints floor and pawl as the contract says, and judges every target', { timeout: 120_000 }, () => {
  const { stdout, stderr, status } = bench(...TINY, '--durability', 'process');

  expect(stderr).toBe('');
  const report = JSON.parse(stdout);
  // 1: on a busy machine the floor may find itself unfit.
  expect(status).toBe(report.fitness.isFit ? 0 : 1);
  const floor = { stepsPerSecond: positive, p50Us: positive, p99Us: positive };
  expect(report.floor).toEqual([
    expect.objectContaining({ name: 'empty transaction NORMAL', ...floor }),
    expect.objectContaining({ name: 'sqlite NORMAL', ...floor }),
    expect.objectContaining({ name: 'sqlite NORMAL group', ...floor }),
  ]);
  const row = { store: 'sqlite', durability: 'process', ...floor, ratioToFloor: positive, bytesPerStep: positive };
  expect(report.pawl).toEqual([
    expect.objectContaining({ ...row, mode: 'sequential', floor: 'sqlite NORMAL', growth: positive }),
    expect.objectContaining({ ...row, mode: 'concurrent', floor: 'sqlite NORMAL group', growth: positive }),
  ]);
  expect(report.coldStart.stores).toHaveLength(2);
  expect(report.targets.map(({ isReached }: { isReached: unknown }) => typeof isReached)).toContain('boolean');
});

test('an option that does not exist is a usage error', () => {
  const { stderr, status } = bench('--nonsense');

  expect(status).toBe(2);
  expect(stderr).toContain('npm run bench -- [options]');
});
