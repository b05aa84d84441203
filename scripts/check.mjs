// Every gate but the tests, in the order of what is fastest to mend. `npm run check -- NAME…` runs only those named.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const bin = (name) => join('node_modules', '.bin', name);
const GATES = [
  ['format', [bin('prettier'), '--check', '.']],
  ['lint', [bin('oxlint'), '--type-aware', '--deny-warnings', 'src', 'test', 'examples', 'bench', 'scripts']],
  ['types', [bin('tsc'), '-p', '.']],
  ['layers', layers],
  ['dead-code', [bin('knip')]],
  ['build', ['npm', 'run', '--silent', 'build']],
  ['package', [bin('publint'), '--strict']],
  ['package-types', [bin('attw'), '--pack', '.', '--profile', 'esm-only', '--quiet']],
  ['errors-documented', ['node', 'scripts/error-table.mjs', '--check']],
  ['stately-drift', ['node', join('dist', 'cli', 'main.js'), 'export', '--check']],
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !GATES.some(([gate]) => gate === name));
if (unknown.length > 0) {
  process.stderr.write(`unknown gate(s): ${unknown.join(', ')}; there are ${GATES.map(([name]) => name).join(', ')}\n`);
  process.exit(2);
}
const failed = [];
for (const [name, command] of GATES) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const fromMs = performance.now();
  const output = typeof command === 'function' ? command() : run(command);
  process.stdout.write(
    `${output === null ? 'ok    ' : 'FAILED'} ${name} (${((performance.now() - fromMs) / 1000).toFixed(1)} s)\n`,
  );
  if (output === null) continue;
  process.stdout.write(`${output}\n`);
  failed.push(name);
}
if (failed.length > 0) {
  process.stdout.write(`gates failed: ${failed.join(', ')}\n`);
  process.exit(1);
}

/** What a failed command printed; null when it went well. */
function run([file, ...args]) {
  const { status, stdout, stderr, error } = spawnSync(file, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  return status === 0 ? null : `${error ?? ''}${stdout ?? ''}${stderr ?? ''}`;
}

/** The layer rule; a check that saw fewer modules than there are files has checked nothing. */
function layers() {
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'json', 'src'];
  const { stdout, stderr } = spawnSync(bin('depcruise'), args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  let result;
  try {
    result = JSON.parse(stdout);
  } catch {
    return `dependency-cruiser gave no report: ${stderr}`;
  }
  const seen = result.modules.filter((module) => module.source.startsWith('src/')).length;
  const files = readdirSync('src', { recursive: true }).filter((file) => String(file).endsWith('.ts')).length;
  if (seen < files) return `dependency-cruiser saw ${seen} of ${files} files`;
  const { violations } = result.summary;
  if (violations.length === 0) return null;
  return violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`).join('\n');
}
