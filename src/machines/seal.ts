/** Keeps what a step produced strict JSON and unchangeable, looking only at what changed by reference. */
import { PawlError } from '../errors.ts';

/** Deeper values are refused: they are cycles, or nobody can read them. */
const MAX_DEPTH = 500;

/**
 * Checks and deep-freezes the parts of `after` that are not the same reference at the same place in `before` (which was
 * sealed). Frozen, because a mutated context would change a state that is already committed, and be lost at a restore.
 * Throws NOT_JSON with the path.
 */
export function sealJson(before: unknown, after: unknown, path: string): void {
  seal(before, after, path, 0);
}

function seal(before: unknown, after: unknown, path: string, depth: number): void {
  if (after === before && typeof after === 'object') return;
  switch (typeof after) {
    case 'string':
      if (!after.isWellFormed()) refuse(path, 'a string with a lone surrogate');
      return;
    case 'boolean':
      return;
    case 'number':
      if (!Number.isFinite(after)) refuse(path, String(after));
      return;
    case 'object':
      if (after !== null) sealObject(before, after, path, depth);
      return;
    default:
      refuse(path, typeof after);
  }
}

function sealObject(before: unknown, after: object, path: string, depth: number): void {
  if (depth > MAX_DEPTH) refuse(path, `a cycle or more than ${MAX_DEPTH} levels`);
  const old = typeof before === 'object' && before !== null ? (before as Record<string, unknown>) : {};
  if (Array.isArray(after)) {
    for (let index = 0; index < after.length; index++) {
      if (!Object.hasOwn(after, index)) refuse(`${path}[${index}]`, 'a hole');
      seal(old[index], after[index], `${path}[${index}]`, depth + 1);
    }
  } else {
    const prototype: unknown = Object.getPrototypeOf(after);
    if (prototype !== Object.prototype && prototype !== null) refuse(path, nameOf(after));
    if (Object.getOwnPropertySymbols(after).length > 0) refuse(path, 'a symbol key');
    for (const key of Object.keys(after)) {
      const item = (after as Record<string, unknown>)[key];
      if (item === old[key] && typeof item === 'object') continue;
      seal(old[key], item, `${path}.${key}`, depth + 1);
    }
  }
  Object.freeze(after);
}

function nameOf(value: object): string {
  const name = (value.constructor as { name?: string } | undefined)?.name;
  return name === undefined || name === '' || name === 'Object' ? 'an object with a prototype' : name;
}

function refuse(path: string, found: string): never {
  throw new PawlError('NOT_JSON', `${path} is ${found}, which cannot be stored; keep strict JSON there.`, {
    details: { path, found },
  });
}
