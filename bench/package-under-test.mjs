/**
 * The package as its users import it: `dist` when it is as new as the sources, else a build of the same entries in a
 * folder of this process's own, so that what is measured is what is written.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const BUILD = fileURLToPath(new URL('./build-package.mjs', import.meta.url));
const ENTRIES = ['index', 'persistence/sqlite/index', 'persistence/memory/index'];

/**
 * Its folder. With `isUnbundled` one file per module, so that a profile can name them.
 * @param {{ dist?: string | undefined, isUnbundled?: boolean }} options
 * @returns {string}
 */
export function findPackage({ dist, isUnbundled = false }) {
  if (dist !== undefined) return dist;
  const built = join(ROOT, 'dist');
  if (!isUnbundled && isFresh(built)) return built;
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const outDir = mkdtempSync(join(cache, 'pawl-bench-'));
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true }));
  // In a process of its own: the bundler's threads and memory would be measured too.
  const build = spawnSync(process.execPath, [BUILD, outDir, ...(isUnbundled ? ['--unbundle'] : [])], { cwd: ROOT });
  if (build.status !== 0) throw new Error(`The package could not be built: ${build.stderr}`);
  return outDir;
}

/** @param {string} dist @returns {Promise<import('./pawl.d.ts').Pawl>} */
export async function loadPackage(dist) {
  const [pawl, sqlite, memory] = await Promise.all(
    ENTRIES.map((entry) => import(pathToFileURL(join(dist, `${entry}.js`)).href)),
  );
  return { ...pawl, ...sqlite, ...memory };
}

/** @param {string} dist */
function isFresh(dist) {
  const entries = ENTRIES.map((entry) => join(dist, `${entry}.js`));
  if (!entries.every((entry) => existsSync(entry))) return false;
  return Math.min(...entries.map((entry) => statSync(entry).mtimeMs)) >= newestMs(join(ROOT, 'src'));
}

/** @param {string} folder @returns {number} */
function newestMs(folder) {
  const times = readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? newestMs(path) : statSync(path).mtimeMs;
  });
  return Math.max(0, ...times);
}
