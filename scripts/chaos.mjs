// The demo at every boundary × every misbehaviour × both dedupe modes, with all rows: what must hold before an issue is
// called resolved. `npm run chaos -- --rows 50 --only B4 --sample 20 --seed 7 --at-once 2`; exits 1 on the first kind of loss.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '200' },
    rate: { type: 'string', default: '40' },
    kills: { type: 'string', default: '10' },
    only: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string' },
    'at-once': { type: 'string', default: '1' },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const KILLS = ['B0', 'B1', 'B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B8', 'every-300'];
const MISBEHAVIOURS = [
  'none',
  'refuse',
  'accept-timeout',
  'accept-reset',
  'slow',
  'late',
  'error-500',
  'query-down',
  'wrong-amount',
  'mix',
];
/** How many runs may need a person, of all, each of them one whose query never answered. */
const MAY_NEED_A_HUMAN = 0.02;

let cells = KILLS.flatMap((kill) =>
  MISBEHAVIOURS.flatMap((misbehave) => ['on', 'off'].map((dedupe) => ({ kill, misbehave, dedupe }))),
);
if (values.only) cells = cells.filter((cell) => Object.values(cell).includes(values.only));
shuffle(cells);
if (values.sample) cells = cells.slice(0, Number(values.sample));

const folder = mkdtempSync(join(tmpdir(), 'pawl-chaos-'));
const fromMs = Date.now();
const bad = [];
const sums = {
  cells: 0,
  kills: 0,
  effects: 0,
  mails: 0,
  duplicates: 0,
  lost: 0,
  needsHuman: 0,
  unknowns: 0,
  diverged: 0,
};
process.stdout.write(`${cells.length} cells of ${values.rows} rows, seed ${seed}\n`);
const queue = [...cells.entries()];
await Promise.all(Array.from({ length: Number(values['at-once']) }, worker));
rmSync(folder, { recursive: true, force: true });
process.stdout.write(`${JSON.stringify({ ...sums, seed, elapsedMs: Date.now() - fromMs, bad: bad.length })}\n`);
for (const line of bad) process.stdout.write(`${line}\n`);
process.exitCode = bad.length > 0 ? 1 : 0;

async function worker() {
  for (let next = queue.shift(); next; next = queue.shift()) await runCell(...next);
}

async function runCell(index, { kill, misbehave, dedupe }) {
  const store = `sqlite:${join(folder, `${index}.db`)}`;
  const kills = kill === 'every-300' ? ['--kill-every', '300'] : ['--kill-at', kill, '--kills', values.kills];
  const how = ['--misbehave', misbehave, '--dedupe', dedupe, '--rows', values.rows, '--rate', values.rate];
  const demo = await pawl('demo', ...kills, ...how, '--seed', String(seed + index), '--store', store, '--json');
  const verify = await pawl('verify', '--all', '--store', store, '--json');
  const name = `${kill} ${misbehave} dedupe ${dedupe} seed ${seed + index}`;
  const problems = demo.report ? judge(demo, verify) : [`no report (exit ${demo.code}): ${demo.stderr.slice(-400)}`];
  sums.cells++;
  for (const problem of problems) bad.push(`${name}: ${problem}`);
  const perCellMs = (Date.now() - fromMs) / sums.cells;
  const leftMin = ((cells.length - sums.cells) * perCellMs) / 60_000;
  const { effects = 0, duplicates = 0, lost = 0, kills: killed = 0, runs = {} } = demo.report ?? {};
  process.stdout.write(
    `${problems.length > 0 ? 'BAD ' : 'ok  '}${name}: ${killed} kills, ${effects} effects, ${duplicates} duplicates, ${lost} lost, ` +
      `${runs.needs_human ?? '?'} need a human (${leftMin.toFixed(0)} min left)\n`,
  );
}

function judge({ code, report }, verify) {
  const { duplicates, lost, mails, runs, boundaries, kills } = report;
  sums.kills += kills;
  sums.effects += report.effects;
  sums.mails += mails.sent;
  sums.duplicates += duplicates + mails.duplicates;
  sums.lost += lost + mails.lost;
  sums.needsHuman += runs.needs_human;
  sums.unknowns += report.unknowns.length;
  const problems = [];
  if (duplicates + mails.duplicates > 0) problems.push(`${duplicates} refunds and ${mails.duplicates} mails twice`);
  if (lost + mails.lost > 0) problems.push(`${lost} refunds and ${mails.lost} mails lost`);
  const all = Object.values(runs).reduce((sum, count) => sum + count, 0);
  if (runs.needs_human > all * MAY_NEED_A_HUMAN) problems.push(`${runs.needs_human} of ${all} runs need a human`);
  if (runs.failed > 0) problems.push(`${runs.failed} runs failed`);
  if (code !== 0 && code !== 6)
    problems.push(`exit ${code}: ${JSON.stringify(boundaries)} ${JSON.stringify(report.problems ?? [])}`);
  const diverged = verify.report?.runs.filter((run) => !run.ok) ?? [{ runId: 'verify', divergedAt: verify.stderr }];
  sums.diverged += diverged.length;
  if (diverged.length > 0) problems.push(`verify: ${JSON.stringify(diverged.slice(0, 2))}`);
  return problems;
}

function pawl(...args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join('dist', 'cli', 'main.js'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => (stdout += chunk));
    child.stderr.on('data', (chunk) => (stderr += chunk));
    child.on('close', (code) => {
      let report = null;
      try {
        report = JSON.parse(stdout);
      } catch {
        // Said by the caller, with what came on stderr.
      }
      resolve({ code, report: report?.error ? null : report, stderr: stderr || stdout });
    });
  });
}

function shuffle(list) {
  let state = seed % 2 ** 31;
  for (let index = list.length - 1; index > 0; index--) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    const other = Math.floor((state / 2 ** 31) * (index + 1));
    [list[index], list[other]] = [list[other], list[index]];
  }
}
