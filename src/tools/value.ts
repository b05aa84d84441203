/** One value against one schema, parsed once: what is stored is strict JSON and is never parsed again. */
import type { z } from 'zod';
import type { Fault, Json } from '../records.ts';
import { nonJsonIn, preview, storableText, thrownMessage } from './fault.ts';

/** Bytes of UTF-8 that one stored output may have. */
const MAX_OUTPUT_BYTES = 256 * 1024;

const MAX_ISSUES = 20;

export type Parsed = { ok: true; value: Json } | { ok: false; problem: string; details: { [key: string]: Json } };

/**
 * Parses `value` and turns the result into strict JSON. A property that the schema lets be undefined is left out, as
 * JSON.stringify does; every other value that is not JSON, or is larger than `maxBytes`, is a problem. Never throws.
 */
export function parseValue(schema: z.ZodType, value: unknown, maxBytes: number): Parsed {
  let parsed: unknown;
  try {
    const result = schema.safeParse(value);
    if (!result.success) return unfit(result.error);
    parsed = withoutUndefined(result.data, new Set());
  } catch (error) {
    // An asynchronous or throwing refinement, a getter that throws, a nesting too deep for the stack.
    return { ok: false, problem: `the schema could not judge it: ${storableText(thrownMessage(error))}`, details: {} };
  }
  return asJson(parsed, maxBytes);
}

/** The value itself as strict JSON of at most `maxBytes`, copied; a problem otherwise. Never throws. */
export function asJson(value: unknown, maxBytes: number): Parsed {
  const found = nonJsonIn(value);
  if (found !== null) {
    const where = found.path === '' ? 'it' : storableText(found.path);
    return { ok: false, problem: `${where} is ${found.found}, which is not JSON`, details: { ...found, path: where } };
  }
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) return { ok: false, problem: `it has ${bytes} bytes, ${maxBytes} at most`, details: { bytes } };
  return { ok: true, value: JSON.parse(text) as Json };
}

/** What a tool's output came to. `raw` is the value as strict JSON, or null if it is not JSON or too large. */
export type JudgedOutput = { fits: true; output: Json } | { fits: false; raw: Json; fault: Fault };

/** Judges a value given by `execute` or `happened` against the tool's output schema. Never throws. */
export function judgeOutput(
  tool: { name: string; output: z.ZodType; sensitive: string[] },
  value: unknown,
): JudgedOutput {
  const parsed = parseValue(tool.output, value, MAX_OUTPUT_BYTES);
  if (parsed.ok) return { fits: true, output: parsed.value };
  const raw = asJson(value, MAX_OUTPUT_BYTES);
  // A raw value that is JSON is stored beside this fault; any other is shown here, unless it may hold secrets.
  const secret = tool.sensitive.some((path) => path.startsWith('output'));
  const evidence = raw.ok ? {} : { preview: secret ? 'withheld: the output is declared sensitive' : preview(value) };
  const message = `Tool '${tool.name}' answered with a value that does not fit its output: ${parsed.problem}.`;
  return {
    fits: false,
    raw: raw.ok ? raw.value : null,
    fault: { code: 'TOOL_OUTPUT_INVALID', message: storableText(message), details: { ...parsed.details, ...evidence } },
  };
}

function unfit(error: z.ZodError): Parsed {
  const issues = error.issues.slice(0, MAX_ISSUES).map((issue) => ({
    path: storableText(issue.path.map(String).join('.')),
    code: issue.code ?? 'custom',
    message: storableText(issue.message),
  }));
  const [first] = issues;
  const where = first === undefined || first.path === '' ? '' : `${first.path}: `;
  return { ok: false, problem: `${where}${first?.message ?? 'refused by the schema'}`, details: { issues } };
}

/** A copy without undefined properties; anything but lists and plain objects is kept for nonJsonIn to find. */
function withoutUndefined(value: unknown, path: Set<object>): unknown {
  if (typeof value !== 'object' || value === null || path.has(value)) return value;
  path.add(value);
  try {
    if (Array.isArray(value)) return value.map((item) => withoutUndefined(item, path));
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return value;
    if (Object.getOwnPropertySymbols(value).length > 0) return value;
    const kept = Object.entries(value).filter(([, item]) => item !== undefined);
    return Object.fromEntries(kept.map(([key, item]) => [key, withoutUndefined(item, path)]));
  } finally {
    path.delete(value);
  }
}
