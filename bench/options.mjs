/** The command line of the bench. */
import { parseArgs } from 'node:util';
import { tmpdir } from 'node:os';

/**
 * @typedef {object} Options
 * @property {boolean} json One JSON document on stdout.
 * @property {boolean} long Also 10,000 steps of one run, and a larger store.
 * @property {boolean} profile A CPU profile of the concurrent case instead of the numbers.
 * @property {('sqlite' | 'memory')[]} stores
 * @property {('disk' | 'process')[]} durabilities
 * @property {number} runs Of one slice, one after another; at once there are always as many as the floor's group.
 * @property {number} steps Of each run.
 * @property {number} rounds Slices of each case; ratios are medians of them.
 * @property {number} history Steps of a long run.
 * @property {string} folder Where the databases are.
 * @property {string | undefined} dist Another build of the package.
 */

export const USAGE = `npm run bench -- [options]
  --json                        one JSON document on stdout
  --long                        also step 10,000 of one run, and a larger store
  --profile                     a CPU profile of 64 runs at once instead of the numbers
  --store sqlite|memory         default sqlite
  --durability disk|process     default both
  --runs N                      runs of a slice that are worked one after another, default 20
  --steps N                     durable steps of a run, default 20
  --rounds N                    slices of each case, default 7
  --history N                   steps of a long run, default 500 (10,000 with --long, where the context is fixed)
  --folder DIR                  where the databases are, default ${tmpdir()}
  --dist DIR                    a build of the package to measure, default dist, or a fresh build if that is stale
`;

/** @param {string[]} args @returns {Options} @throws TypeError for what is not known */
export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      json: { type: 'boolean', default: false },
      long: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      store: { type: 'string', default: 'sqlite' },
      durability: { type: 'string' },
      runs: { type: 'string', default: '20' },
      steps: { type: 'string', default: '20' },
      rounds: { type: 'string', default: '7' },
      history: { type: 'string', default: '500' },
      folder: { type: 'string', default: tmpdir() },
      dist: { type: 'string' },
    },
  });
  const durability = values.durability && oneOf('--durability', values.durability, ['disk', 'process']);
  return {
    json: values.json,
    long: values.long,
    profile: values.profile,
    stores: [oneOf('--store', values.store, ['sqlite', 'memory'])],
    durabilities: durability ? [durability] : ['disk', 'process'],
    runs: whole('--runs', values.runs, 1),
    steps: whole('--steps', values.steps, 2),
    rounds: whole('--rounds', values.rounds, 1),
    history: whole('--history', values.history, 20),
    folder: values.folder,
    dist: values.dist,
  };
}

/**
 * @template {string} T
 * @param {string} flag @param {string} value @param {T[]} allowed
 * @returns {T}
 */
function oneOf(flag, value, allowed) {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new TypeError(`${flag} ${value}: use ${allowed.join(' or ')}.`);
  return found;
}

/** @param {string} flag @param {string} value @param {number} least */
function whole(flag, value, least) {
  const number = Number(value);
  if (!Number.isInteger(number) || number < least)
    throw new TypeError(`${flag} ${value}: use a whole number from ${least}.`);
  return number;
}
