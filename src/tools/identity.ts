/** Which operation an input means: deterministic ids from tenant, run, tool and business key (DESIGN 3.2). */
import { PawlError } from '../errors.ts';
import { digestOf } from '../json.ts';
import type { Fault, Json } from '../records.ts';
import { nonJsonIn, storableText, thrownMessage } from './fault.ts';
import type { ToolDefinition } from './tool.ts';

export interface OperationIdentity {
  /** SHA-256 of (tenant or run, tool name, business key or invocation), 64 hex digits. */
  keyDigest: string;
  /** SHA-256 of the canonical input, 64 hex digits. */
  inputDigest: string;
  /** `op_` and 32 hex digits. `generation` is a whole number from 1; the input plays no part. */
  operationId(generation: number): string;
}

/**
 * Neither time nor step number plays a part, so a run that plans the same action again means the same operation.
 * Without a key it is the invocation (for a compensation: any id that the runtime derives from what it undoes).
 *
 * Not ok, TOOL_INPUT_INVALID: `key` threw or did not return a list of JSON values. Never throws.
 */
export function operationIdentity(arg: {
  tenant: string;
  runId: string;
  tool: ToolDefinition;
  /** As parsed by parseToolInput. */
  input: Json;
  invocationId: string;
}): { ok: true; identity: OperationIdentity } | { ok: false; error: Fault } {
  const { tenant, runId, tool, input, invocationId } = arg;
  const read = readKey(tool, input);
  if ('problem' in read) {
    const message = storableText(`Tool '${tool.name}': ${read.problem}.`);
    return { ok: false, error: { code: 'TOOL_INPUT_INVALID', message, details: { tool: tool.name } } };
  }
  const { key } = read;
  // Invocation ids are unique within their run only, so without a key the run always takes part.
  const owner = tool.scope === 'tenant' && key !== null ? ['tenant', tenant] : ['run', tenant, runId];
  const meaning = key === null ? ['invocation', invocationId] : ['key', key];
  const keyDigest = digestOf(['pawl.operation.1', owner, tool.name, meaning]);
  const identity: OperationIdentity = {
    keyDigest,
    inputDigest: digestOf(input),
    operationId(generation) {
      if (!Number.isSafeInteger(generation) || generation < 1) {
        throw new PawlError('INVALID_ARGUMENT', `generation is ${generation}; it is a whole number from 1.`);
      }
      return `op_${digestOf([keyDigest, generation]).slice(0, 32)}`;
    },
  };
  return { ok: true, identity };
}

/** `key` null: the tool has none. */
function readKey(tool: ToolDefinition, input: Json): { key: Json[] | null } | { problem: string } {
  if (tool.key === null) return { key: null };
  let key: unknown;
  try {
    key = tool.key({ input: structuredClone(input) });
  } catch (error) {
    return { problem: `key() threw: ${thrownMessage(error)}` };
  }
  if (!Array.isArray(key)) return { problem: 'key() did not return a list; write ({ input }) => [input.orderId]' };
  const found = nonJsonIn(key);
  if (found) return { problem: `key()${found.path} is ${found.found}, which is not JSON` };
  return { key: key as Json[] };
}
