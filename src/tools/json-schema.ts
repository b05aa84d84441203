/** A Zod schema may only describe strict JSON and may not change what it parses: the check, and its JSON Schema. */
import { z } from 'zod';
import { messageOf } from '../errors.ts';
import type { JsonObject } from '../records.ts';
import { refuseDefinition, shown } from './definition-checks.ts';

/** Types that z.toJSONSchema lets pass although their values are not JSON or are not the values parsed. */
const NOT_JSON = new Set(['file', 'promise', 'success', 'transform']);

/**
 * The JSON Schema of `schema`, read by the caller (`io: 'input'`) or of what a parse gives (`'output'`).
 * Defaults and trims are allowed: what they give parses to itself. Refinements are kept by Zod only.
 *
 * @throws {PawlError} TOOL_INVALID for anything but a Zod 4 schema, for dates, bigints, maps and other values that are
 * not JSON, for transforms, codecs and preprocessing, and for coercion.
 */
export function jsonSchemaOf(what: string, field: string, schema: unknown, io: 'input' | 'output'): JsonObject {
  if (typeof schema !== 'object' || schema === null || !('_zod' in schema)) {
    refuseDefinition(
      what,
      `${field} is ${shown(schema)}`,
      'write a Zod 4 schema, such as z.object({ orderId: z.string() })',
    );
  }
  let written: unknown;
  const problems: string[] = [];
  try {
    written = z.toJSONSchema(schema as z.ZodType, {
      io,
      unrepresentable: ({ path, message }) => {
        throw new Error(`${message}${at(path)}`);
      },
      override: ({ zodSchema, path }) => {
        // `_zod` is how Zod 4 shows a schema to libraries.
        // oxlint-disable-next-line no-underscore-dangle
        const problem = problemOf(zodSchema._zod.def);
        if (problem !== null) problems.push(`${problem}${at(path)}`);
      },
    });
  } catch (error) {
    problems.unshift(messageOf(error));
  }
  if (problems[0] !== undefined) {
    refuseDefinition(
      what,
      `${field} is not plain JSON: ${problems[0]}`,
      'describe the value as it is stored, for example a date as z.iso.datetime(), and convert it inside execute',
    );
  }
  return JSON.parse(JSON.stringify(written)) as JsonObject;
}

function problemOf(def: {
  type: string;
  coerce?: unknown;
  transform?: unknown;
  in?: unknown;
  out?: unknown;
}): string | null {
  if (def.coerce === true) return `coercion to ${def.type}`;
  if (NOT_JSON.has(def.type)) return `z.${def.type}()`;
  if (def.type !== 'pipe') return null;
  const changes = 'transform' in def || isTransform(def.in) || isTransform(def.out);
  return changes ? 'a transform, codec or preprocess' : null;
}

function isTransform(schema: unknown): boolean {
  return schema instanceof z.core.$ZodTransform;
}

function at(path: readonly (string | number)[]): string {
  return path.length === 0 ? '' : ` at ${path.join('.')}`;
}
