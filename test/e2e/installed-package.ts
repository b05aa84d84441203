/** The packed tarball installed into an empty project, as a user has it; once per test file. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export interface InstalledProject {
  folder: string;
  remove(): void;
}

/** `omitOptional` leaves the embedded SQLite driver out. */
export function installPackage(options: { omitOptional?: boolean } = {}): InstalledProject {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-package-'));
  const root = resolve('.');
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const packed = execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
  }).trim();
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'a-user', private: true, type: 'module' }));
  const extra = options.omitOptional === true ? ['--omit=optional'] : [];
  run(
    'npm',
    'install',
    '--silent',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    ...extra,
    `./${packed}`,
    'xstate@5.33.3',
    'zod@4.6.7',
  );
  rmSync(join(folder, packed));
  cpSync(join(root, 'test', 'e2e', 'fixture'), folder, { recursive: true });
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Bytes of all files below a folder. */
export function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  }
  return bytes;
}
