/** Anything thrown, as a Fault that may be stored: strict JSON, bounded, never itself throwing. */
import { inspect } from 'node:util';
import { findNonJson, type JsonProblem } from '../json.ts';
import type { Fault, Json } from '../records.ts';

const MAX_MESSAGE = 2000;
const MAX_DETAILS_BYTES = 16 * 1024;
const MAX_PREVIEW = 2000;

/** A fault with the message of `error` and, where it has them, its `details`; at most 2,000 characters and 16 KB. */
export function faultOf(code: string, error: unknown): Fault {
  const details = detailsOf(error);
  return { code, message: storableText(thrownMessage(error)), ...(details === null ? {} : { details }) };
}

/** Cuts to 2,000 characters and replaces lone surrogates. */
export function storableText(text: string): string {
  const cut = text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE - 1)}…` : text;
  return cut.toWellFormed();
}

/** The message of anything thrown, also of values that cannot be turned into a string. */
export function thrownMessage(error: unknown): string {
  try {
    if (error instanceof Error || (typeof error === 'object' && error !== null && 'message' in error)) {
      return String(error.message);
    }
    return String(error);
  } catch {
    return preview(error);
  }
}

/** A value as evidence for people: one line, at most 2,000 characters. Runs no getter and no trap. */
export function preview(value: unknown): string {
  try {
    const text = inspect(value, {
      depth: 4,
      maxArrayLength: 20,
      maxStringLength: 500,
      breakLength: Infinity,
      customInspect: false,
      getters: false,
      showProxy: true,
    });
    return text.slice(0, MAX_PREVIEW).toWellFormed();
  } catch {
    return 'a value that cannot be shown';
  }
}

/** findNonJson for values of strangers: a getter that throws or a nesting too deep for the stack is a problem as well. */
export function nonJsonIn(value: unknown): JsonProblem | null {
  try {
    return findNonJson(value);
  } catch (error) {
    return { path: '', found: `a value that cannot be read (${thrownMessage(error).slice(0, 200)})` };
  }
}

function detailsOf(error: unknown): Json {
  if (typeof error !== 'object' || error === null) return null;
  try {
    const { details, name, code } = error as { details?: unknown; name?: unknown; code?: unknown };
    if (details === null) return null;
    if (details !== undefined) return storableDetails(details);
    // Names such as ECONNRESET and AbortError tell what to look at.
    const known = { ...(isShort(name) && name !== 'Error' ? { name } : {}), ...(isShort(code) ? { code } : {}) };
    return Object.keys(known).length === 0 ? null : known;
  } catch {
    return null;
  }
}

function storableDetails(details: unknown): Json {
  if (nonJsonIn(details) === null) {
    const text = JSON.stringify(details);
    if (Buffer.byteLength(text) <= MAX_DETAILS_BYTES) return JSON.parse(text) as Json;
  }
  return { preview: preview(details) };
}

function isShort(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 100 && value.isWellFormed();
}
