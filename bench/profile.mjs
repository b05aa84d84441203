/** A CPU profile of a piece of work, summed up as self time by file and function. */
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const SAMPLE_US = 100;

/**
 * @typedef {{ place: string, name: string, selfUs: number, share: number }} ProfileRow `selfUs`: per step.
 */

/**
 * @param {() => Promise<number>} work Returns how many steps it did.
 * @param {string} dist Folder of the package, whose files are named by their sources.
 * @returns {Promise<{ rows: ProfileRow[], files: ProfileRow[], usPerStep: number, samples: number }>}
 */
export async function profileWork(work, dist) {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
  await session.post('Profiler.start');
  const steps = await work();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  const selfUs = selfTimes(profile);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  /** @type {Map<string, ProfileRow>} */
  const rows = new Map();
  const files = new Map();
  let totalUs = 0;
  for (const [id, us] of selfUs) {
    const { functionName, url, lineNumber } = nodes.get(id).callFrame;
    if (functionName === '(idle)' || functionName === '(root)') continue;
    totalUs += us;
    const place = url === '' ? 'node' : placeOf(url, dist);
    const name = `${functionName || '(anonymous)'}${url === '' ? '' : `:${lineNumber + 1}`}`;
    add(rows, `${place} ${name}`, { place, name, us });
    add(files, place, { place, name: '', us });
  }
  const finish = (map) =>
    [...map.values()]
      .map(({ place, name, us }) => ({ place, name, selfUs: us / steps, share: us / totalUs }))
      .sort((a, b) => b.selfUs - a.selfUs);
  return {
    rows: finish(rows).slice(0, 40),
    files: finish(files).slice(0, 25),
    usPerStep: totalUs / steps,
    samples: profile.samples?.length ?? 0,
  };
}

/** @returns {Map<number, number>} */
function selfTimes(profile) {
  const times = new Map();
  profile.samples.forEach((id, index) => {
    times.set(id, (times.get(id) ?? 0) + (profile.timeDeltas[index + 1] ?? 0));
  });
  return times;
}

function add(map, key, { place, name, us }) {
  const row = map.get(key) ?? { place, name, us: 0 };
  row.us += us;
  map.set(key, row);
}

/** Files of the package by their path in `src`, packages by their name. @param {string} url @param {string} dist */
function placeOf(url, dist) {
  if (!url.startsWith('file:')) return url;
  const path = fileURLToPath(url);
  const inside = relative(dist, path);
  if (!inside.startsWith('..')) return inside.replace(/\.js$/, '.ts');
  const inPackage = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
  return inPackage ?? relative(process.cwd(), path);
}
