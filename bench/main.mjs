/**
 * `npm run bench [-- --json --long --profile …]`: the work of PERFORMANCE.md on the embedded store, against a floor that
 * is measured in the same process, in turns with it. Exit code 1 when the floor is unfit; targets that are not reached
 * are reported, not failed on.
 */
import { cpus } from 'node:os';
import { measureFitness } from './floor-sqlite.mjs';
import { measureBytes, measureClaims, measureGrowth } from './growth.mjs';
import { measureColdStart } from './cold-start.mjs';
import { measureLeases } from './leases.mjs';
import { parseOptions, USAGE } from './options.mjs';
import { findPackage, loadPackage } from './package-under-test.mjs';
import { profileWork } from './profile.mjs';
import { renderProfile, renderReport } from './report.mjs';
import { judge } from './targets.mjs';
import { measureThroughput } from './throughput.mjs';
import { Workplace } from './work.mjs';

/**
 * @typedef {object} Measured
 * @property {Awaited<ReturnType<typeof measureThroughput>>['floor']} floor
 * @property {(import('./throughput.mjs').Case & { bytesPerStep: number | null, growth: number })[]} pawl
 * @property {{ steps: number, grows: boolean, durability: string, growth: number }[]} growth
 * @property {{ fixed: number, growing: number } | null} bytes
 * @property {Awaited<ReturnType<typeof measureClaims>> | null} claims
 * @property {Awaited<ReturnType<typeof measureColdStart>> | null} coldStart
 * @property {Awaited<ReturnType<typeof measureLeases>> | null} leases
 *
 * @typedef {Measured & {
 *   targets: import('./targets.mjs').Target[],
 *   fitness: Awaited<ReturnType<typeof measureFitness>>,
 *   machine: string,
 *   elapsedMs: number,
 * }} Report
 */

// As a service runs: without the traps of development.
process.env['NODE_ENV'] ??= 'production';
process.exitCode = await main(process.argv.slice(2));

/** @param {string[]} args @returns {Promise<number>} */
async function main(args) {
  let options;
  try {
    options = parseOptions(args);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  const dist = findPackage({ dist: options.dist, isUnbundled: options.profile });
  const pawl = await loadPackage(dist);
  if (options.profile) {
    const profile = await profileConcurrent(pawl, dist, options);
    process.stdout.write(options.json ? `${JSON.stringify(profile)}\n` : renderProfile(profile));
    return 0;
  }
  const report = await measure(pawl, dist, options);
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : renderReport(report));
  return report.fitness.isFit ? 0 : 1;
}

/** @param {import('./options.mjs').Options} options @returns {Promise<Report>} */
async function measure(pawl, dist, options) {
  const { folder, history, long, rounds } = options;
  const beganMs = performance.now();
  // One round measures nothing: it only shows that everything can be measured.
  const isTrial = rounds === 1;
  const say = (/** @type {string} */ what) => void (process.stderr.isTTY && process.stderr.write(`${what} …\n`));
  /** @type {Measured} */
  const measured = { floor: [], pawl: [], growth: [], bytes: null, claims: null, coldStart: null, leases: null };
  say('floor');
  const fitness = await measureFitness(folder, isTrial ? 1 : 9);
  const hasSqlite = options.stores.includes('sqlite');
  if (hasSqlite) {
    say('bytes');
    measured.bytes = {
      fixed: await measureBytes(pawl, { steps: history, grows: false, folder }),
      growing: await measureBytes(pawl, { steps: history, grows: true, folder }),
    };
  }
  for (const store of options.stores) {
    for (const durability of options.durabilities) {
      say(`${store} ${durability}`);
      const { floor, pawl: rows } = await measureThroughput(pawl, { store, durability }, options);
      const how = { steps: history, repeats: Math.min(5, rounds), folder };
      const growing = await measureGrowth(pawl, { store, durability }, { ...how, grows: true });
      measured.growth.push({ steps: history, grows: true, durability, ...growing });
      const same = await measureGrowth(pawl, { store, durability }, { ...how, grows: false });
      measured.growth.push({ steps: history, grows: false, durability, ...same });
      measured.floor.push(...floor);
      const bytesPerStep = store === 'sqlite' ? (measured.bytes?.fixed ?? null) : null;
      measured.pawl.push(...rows.map((row) => ({ ...row, bytesPerStep, growth: same.growth })));
    }
  }
  if (hasSqlite) {
    if (long) {
      say('10,000 steps');
      const how = { steps: 10_000, grows: false, repeats: Math.min(3, rounds), folder };
      const durability = /** @type {const} */ ('process');
      measured.growth.push({
        ...how,
        durability,
        ...(await measureGrowth(pawl, { store: 'sqlite', durability }, how)),
      });
    }
    say('claims');
    measured.claims = await measureClaims(pawl, { early: 10, late: long ? 10_000 : history, folder });
    say('cold start');
    measured.coldStart = await measureColdStart(pawl, {
      dist,
      small: 0,
      large: isTrial ? 20 : long ? 10_000 : 2_000,
      history,
      rounds: isTrial ? 1 : Math.max(rounds, 5),
      folder,
    });
    say('leases');
    measured.leases = await measureLeases(pawl, { runs: isTrial ? 20 : 1_000, folder });
  }
  return {
    ...measured,
    targets: judge(measured),
    fitness,
    machine: `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${folder}`,
    elapsedMs: Math.round(performance.now() - beganMs),
  };
}

/** @param {import('./options.mjs').Options} options */
async function profileConcurrent(pawl, dist, { steps, rounds, folder }) {
  const workplace = new Workplace(pawl, { kind: 'sqlite', durability: 'disk', folder });
  const slice = () => workplace.slice({ runs: 64, steps, concurrency: 64 });
  try {
    for (let warm = 0; warm < 4; warm++) await slice();
    return await profileWork(async () => {
      let done = 0;
      for (let round = 0; round < rounds; round++) done += (await slice()).steps;
      return done;
    }, dist);
  } finally {
    await workplace.close();
  }
}
