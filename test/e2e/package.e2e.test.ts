/** The package as a user gets it: entries, size, and the README's program word for word. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bytesBelow, installPackage, type InstalledProject } from './installed-package.ts';

let full: InstalledProject;
let small: InstalledProject;
beforeAll(() => {
  full = installPackage();
  small = installPackage({ omitOptional: true });
}, 180_000);
afterAll(() => {
  full.remove();
  small.remove();
});

function node(folder: string, code: string): string {
  return execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd: folder, encoding: 'utf8' });
}

test('each entry has what the contract names', () => {
  const names = (entry: string): string[] =>
    JSON.parse(
      node(full.folder, `console.log(JSON.stringify(Object.keys(await import('${entry}')).sort()))`),
    ) as string[];
  expect(names('pawl')).toEqual(
    [
      ...['approval', 'createRuntime', 'decide', 'defineAgent', 'defineEvents', 'didNotHappen', 'ERROR_CODES'],
      ...['happened', 'isPawlError', 'NotExecuted', 'now', 'openStore', 'PawlError', 'random', 'tool'],
      ...['toolError', 'ToolFailure', 'unknown'],
    ].toSorted(),
  );
  expect(names('pawl/sqlite')).toEqual(['sqliteStore']);
  expect(names('pawl/memory')).toEqual(['memoryStore']);
  expect(names('pawl/testing')).toEqual(['simulatedClock', 'storeConformance']);
});

test('installed it is at most 36 MB, 16 MB without the SQLite driver, and holds no examples', () => {
  const megabytes = (folder: string): number => bytesBelow(join(folder, 'node_modules')) / 2 ** 20;
  process.stdout.write(
    `installed: ${megabytes(full.folder).toFixed(1)} MB, without driver ${megabytes(small.folder).toFixed(1)} MB\n`,
  );
  expect(megabytes(full.folder)).toBeLessThanOrEqual(36);
  expect(megabytes(small.folder)).toBeLessThanOrEqual(16);
  const files = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--silent'], {
    encoding: 'utf8',
  });
  expect(files).not.toMatch(/examples|vendor-refunds|\.test\./);
});

test('without the SQLite driver the package loads, and opening a file says what to install', () => {
  const code = `
    import { openStore } from 'pawl';
    try { await openStore('sqlite:./x.db').list({}); console.log('opened'); } catch (error) { console.log(error.code, error.message); }`;
  expect(node(small.folder, code)).toMatch(
    process.versions.node.startsWith('20.') ? /MISSING_PACKAGE .*npm install libsql/ : /opened|MISSING_PACKAGE/,
  );
});

test('the README’s program runs word for word, twice, and pays once', () => {
  const readme = readFileSync('README.md', 'utf8');
  const program = /<!-- example: refund\.mjs -->\n```js\n([\s\S]*?)```/.exec(readme)?.[1];
  if (program === undefined) throw new Error('the README has no program refund.mjs');
  writeFileSync(join(full.folder, 'refund.mjs'), program);
  const run = (): string => execFileSync(process.execPath, ['refund.mjs'], { cwd: full.folder, encoding: 'utf8' });
  expect(run().split('\n')).toEqual(['applied refunding', 'duplicate', "done { refundId: 'refund-of-A-17' }", '']);
  expect(run().split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(/^duplicate/),
    'duplicate',
    "done { refundId: 'refund-of-A-17' }",
  ]);
});

test('the bin answers', () => {
  const help = execFileSync(join('node_modules', '.bin', 'pawl'), ['--help'], { cwd: full.folder, encoding: 'utf8' });
  expect(help).toContain('explain');
});
