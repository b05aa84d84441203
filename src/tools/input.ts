/** The input of an invoke meets the tool's schema: parsed once, before the intent is stored. */
import type { Fault, Json } from '../records.ts';
import { storableText } from './fault.ts';
import type { ToolDefinition } from './tool.ts';
import { parseValue } from './value.ts';

/** Parses the input of an invoke once; what comes back is what is stored, hashed and given to the tool. Never throws. */
export function parseToolInput(
  tool: Pick<ToolDefinition, 'name' | 'input'>,
  input: unknown,
): { ok: true; input: Json } | { ok: false; error: Fault } {
  const parsed = parseValue(tool.input, input, Infinity);
  if (parsed.ok) return { ok: true, input: parsed.value };
  const message = storableText(`The input of tool '${tool.name}' does not fit: ${parsed.problem}.`);
  return { ok: false, error: { code: 'TOOL_INPUT_INVALID', message, details: { tool: tool.name, ...parsed.details } } };
}
