/** Strict JSON: what may be stored, its canonical text (RFC 8785) and its digest. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Json } from './records.ts';

/** Why a value is not strict JSON, and where: `context.items[3].when`. */
export interface JsonProblem {
  path: string;
  found: string;
}

/**
 * Returns the first place where `value` is not strict JSON, or null. Strict means that `JSON.parse(JSON.stringify(v))`
 * gives back an equal value: no undefined, NaN, Infinity, bigint, symbol, function, Date, Map, class instance, cycle,
 * sparse array or lone surrogate. (-0 counts as 0, as RFC 8785 writes it.)
 */
export function findNonJson(value: unknown, path = '', seen: Set<object> = new Set()): JsonProblem | null {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? null : { path, found: 'a string with a lone surrogate' };
    case 'boolean':
      return null;
    case 'number':
      return Number.isFinite(value) ? null : { path, found: String(value) };
    case 'object':
      break;
    default:
      return { path, found: typeof value };
  }
  if (value === null) return null;
  if (seen.has(value)) return { path, found: 'a cycle' };
  seen.add(value);
  const problem = Array.isArray(value) ? nonJsonInArray(value, path, seen) : nonJsonInObject(value, path, seen);
  seen.delete(value);
  return problem;
}

function nonJsonInArray(value: unknown[], path: string, seen: Set<object>): JsonProblem | null {
  for (let index = 0; index < value.length; index++) {
    if (!(index in value)) return { path: `${path}[${index}]`, found: 'a hole' };
    const problem = findNonJson(value[index], `${path}[${index}]`, seen);
    if (problem) return problem;
  }
  return null;
}

function nonJsonInObject(value: object, path: string, seen: Set<object>): JsonProblem | null {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return { path, found: (value.constructor as { name?: string } | undefined)?.name ?? 'an object with a prototype' };
  }
  if (Object.getOwnPropertySymbols(value).length > 0) return { path, found: 'a symbol key' };
  for (const [key, item] of Object.entries(value)) {
    const problem = findNonJson(item, path === '' ? key : `${path}.${key}`, seen);
    if (problem) return problem;
  }
  return null;
}

/** RFC 8785 text of a strict JSON value. */
export function canonicalJson(value: Json): string {
  return canonicalize(value) as string;
}

/** SHA-256 of a text, 64 hex digits. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** SHA-256 over the canonical JSON of a value, 64 hex digits. */
export function digestOf(value: Json): string {
  return sha256(canonicalJson(value));
}
