/**
 * What changed between two strict JSON values, as data. Identical references are skipped, so the cost follows the change
 * and not the size; where references differ the contents are compared, so the result does not depend on sharing.
 *
 * A patch is one of
 * - `{ v: value }`: the whole value is replaced;
 * - `{ s: { key: patch }, d?: [key] }`: keys of an object are set or patched, then deleted;
 * - `{ n: length, i?: { index: patch }, a?: [values] }`: an array is cut to `n`, items patched, values appended.
 */
import type { Json, JsonObject } from './records.ts';

export type Patch =
  | { v: Json }
  | { s?: { [key: string]: Patch }; d?: string[] }
  | { n: number; i?: { [index: string]: Patch }; a?: Json[] };

/** The patch that turns `before` into `after`, or null when they are equal. */
export function diff(before: Json | undefined, after: Json): Patch | null {
  if (before === after) return null;
  if (typeof before !== 'object' || typeof after !== 'object' || before === null || after === null) return { v: after };
  if (Array.isArray(after)) return Array.isArray(before) ? diffArrays(before, after) : { v: after };
  return Array.isArray(before) ? { v: after } : diffObjects(before, after);
}

function diffArrays(before: Json[], after: Json[]): Patch | null {
  const kept = Math.min(before.length, after.length);
  const items: { [index: string]: Patch } = {};
  let changed = 0;
  for (let index = 0; index < kept; index++) {
    const patch = diff(before[index], after[index] as Json);
    if (patch === null) continue;
    items[index] = patch;
    changed++;
  }
  if (changed === 0 && before.length === after.length) return null;
  if (changed > 0 && changed === kept && kept > 0 && 'v' in (items[0] as Patch)) return { v: after };
  return {
    n: kept,
    ...(changed > 0 ? { i: items } : {}),
    ...(after.length > kept ? { a: after.slice(kept) } : {}),
  };
}

function diffObjects(before: JsonObject, after: JsonObject): Patch | null {
  const set: { [key: string]: Patch } = Object.create(null) as { [key: string]: Patch };
  let changed = false;
  for (const key of Object.keys(after)) {
    const patch = Object.hasOwn(before, key) ? diff(before[key], after[key] as Json) : { v: after[key] as Json };
    if (patch === null) continue;
    set[key] = patch;
    changed = true;
  }
  const deleted = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  if (!changed && deleted.length === 0) return null;
  return { ...(changed ? { s: set } : {}), ...(deleted.length > 0 ? { d: deleted } : {}) };
}

/** Applies a patch without changing `before`. Throws a TypeError when the patch does not fit the value. */
export function applyPatch(before: Json | undefined, patch: Patch): Json {
  if ('v' in patch) return patch.v;
  if ('n' in patch) {
    if (!Array.isArray(before) || before.length < patch.n) throw new TypeError('patch does not fit: array expected');
    const items = before.slice(0, patch.n);
    for (const [index, item] of Object.entries(patch.i ?? {}))
      items[Number(index)] = applyPatch(items[Number(index)], item);
    return items.concat(patch.a ?? []);
  }
  if (typeof before !== 'object' || before === null || Array.isArray(before)) {
    throw new TypeError('patch does not fit: object expected');
  }
  const result = new Map(Object.entries(before));
  for (const [key, item] of Object.entries(patch.s ?? {})) result.set(key, applyPatch(result.get(key), item));
  for (const key of patch.d ?? []) result.delete(key);
  return Object.fromEntries(result);
}
