/** A changed context must still fit the agent's schema; what did not change is not parsed again. */
import { z } from 'zod';

/** Throws a TypeError with the path when `after` does not fit. `before` fitted, or is undefined. */
export function checkContext(schema: z.ZodType, before: unknown, after: unknown): void {
  const parts = changedParts(schema, before, after);
  if (parts === null) return check(schema, after, ['context']);
  for (const [key, part] of parts) check(part, (after as Record<string, unknown>)[key], ['context', key]);
}

function check(schema: z.ZodType, value: unknown, path: PropertyKey[]): void {
  const parsed = schema.safeParse(value);
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const place = [...path, ...(issue?.path ?? [])].join('.');
  throw new TypeError(`${place} does not fit the agent's context schema: ${issue?.message ?? 'invalid'}`);
}

/** The changed fields of a plain object schema and their schemas; null when only a whole parse can tell. */
function changedParts(schema: z.ZodType, before: unknown, after: unknown): [string, z.ZodType][] | null {
  if (!(schema instanceof z.ZodObject) || (schema.def.checks?.length ?? 0) > 0) return null;
  if (typeof before !== 'object' || before === null) return null;
  const old = before as Record<string, unknown>;
  const now = after as Record<string, unknown>;
  const keys = Object.keys(now);
  const parts: [string, z.ZodType][] = [];
  for (const key of keys) {
    const part = (schema.shape as Record<string, z.ZodType | undefined>)[key];
    if (part === undefined || !Object.hasOwn(old, key)) return null;
    if (old[key] !== now[key]) parts.push([key, part]);
  }
  return keys.length === Object.keys(old).length ? parts : null;
}
