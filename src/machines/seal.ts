/** Keeps what a step produced strict JSON and unchangeable, looking only at what changed by reference. */
import { PawlError } from '../errors.ts';
import { findNonJson } from '../json.ts';

/** Deeper values are refused: they are cycles, or nobody can read them. */
const MAX_DEPTH = 500;

/**
 * Checks and deep-freezes the parts of `after` that are not the same reference at the same place in `before` (which was
 * sealed). Frozen, because changing a context in place would change a state that is already committed, and the change
 * would be lost at a restore. Throws NOT_JSON with the path, which starts with `name`.
 */
export function sealJson(before: unknown, after: unknown, name: string): void {
  if (seal(before, after, 0)) return;
  const problem = findNonJson(after, name) ?? { path: name, found: `nested deeper than ${MAX_DEPTH} levels` };
  throw new PawlError(
    'NOT_JSON',
    `${problem.path} is ${problem.found}, which cannot be stored; keep strict JSON there.`,
    {
      details: { path: problem.path, found: problem.found },
    },
  );
}

/** False when the value is not strict JSON; where, is found afterwards. */
function seal(before: unknown, after: unknown, depth: number): boolean {
  switch (typeof after) {
    case 'string':
      return after === before || after.isWellFormed();
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(after);
    case 'object':
      return after === null || after === before || sealObject(before, after, depth);
    default:
      return false;
  }
}

function sealObject(before: unknown, after: object, depth: number): boolean {
  if (depth > MAX_DEPTH) return false;
  const old = (typeof before === 'object' && before !== null ? before : {}) as Record<string, unknown>;
  const items = after as Record<string, unknown>;
  if (Array.isArray(after)) {
    for (let index = 0; index < after.length; index++) {
      if (!(index in after) || !seal(old[index], items[index], depth + 1)) return false;
    }
  } else {
    const prototype: unknown = Object.getPrototypeOf(after);
    if (prototype !== Object.prototype && prototype !== null) return false;
    if (Object.getOwnPropertySymbols(after).length > 0) return false;
    for (const key of Object.keys(after)) if (!seal(old[key], items[key], depth + 1)) return false;
  }
  Object.freeze(after);
  return true;
}
