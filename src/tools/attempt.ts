/** One attempt: what `execute` ends with decides the outcome (the table of DESIGN 3.2). */
import type { Clock } from '../clock.ts';
import type { Fault, Json } from '../records.ts';
import { callWithin, type CallEnd } from './call-within.ts';
import { faultOf } from './fault.ts';
import { isNotExecuted, isToolFailure } from './outcome.ts';
import type { RunInfo, ToolDefinition } from './tool.ts';
import { judgeOutput } from './value.ts';

export interface AttemptCall {
  /** As stored with the intent. The tool gets a copy. */
  input: Json;
  operationId: string;
  /** From 1. */
  attempt: number;
  run: RunInfo;
  artifacts: unknown;
  signal: AbortSignal;
  /** What is left until `attempt.atMs + timeoutMs`; 0 or less starts no call. */
  timeoutMs: number;
  clock: Clock;
  /** Right after `execute` was invoked. */
  onSent?: (() => void) | undefined;
  /** When `execute` has answered or thrown in time, before that is judged. */
  onAnswer?: (() => void | Promise<void>) | undefined;
}

export type AttemptEnd =
  /** `invalid`: a write whose value does not fit; the effect is real, `output` is the raw JSON value or null. */
  | { outcome: 'succeeded'; output: Json; invalid?: Fault }
  /** Definitive: `TOOL_FAILED`, or `TOOL_OUTPUT_INVALID` of a read. */
  | { outcome: 'failed'; error: Fault }
  /**
   * This attempt is proved to have had no effect: `TOOL_NOT_EXECUTED`. It says nothing of earlier ones.
   * `notSent`: `execute` was not invoked.
   */
  | { outcome: 'not_executed'; error: Fault; notSent?: true }
  /** `TOOL_TIMEOUT` or `TOOL_FAILED`. Of a read: to be performed again. */
  | { outcome: 'unknown'; error: Fault };

/**
 * Calls `execute` once and says how it ended. Never rejects.
 *
 * At the time-out the tool's signal aborts and this returns at once; a later answer is dropped. When `signal` aborts,
 * a read returns at once, but a write is waited for until its time-out: its answer is worth more than an unknown
 * outcome. A worker that must go drops the promise. With `signal` aborted or no time left, `execute` is not invoked.
 */
export async function performAttempt(tool: ToolDefinition, call: AttemptCall): Promise<AttemptEnd> {
  if (call.signal.aborted || !(call.timeoutMs > 0)) return notSent(tool, call);
  const { operationId, attempt, run, artifacts, signal, timeoutMs, clock, onSent } = call;
  try {
    const input = structuredClone(call.input);
    const end = await callWithin({
      call: (toTool) => tool.execute({ input, operationId, attempt, signal: toTool, run, artifacts }),
      signal,
      timeoutMs,
      clock,
      leaveOnAbort: tool.effect === 'read',
      onSent,
    });
    if (end.kind === 'answered' || end.kind === 'threw') await call.onAnswer?.();
    return judge(tool, end, call);
  } catch (error) {
    return { outcome: 'unknown', error: faultOf('TOOL_FAILED', error) };
  }
}

function judge(tool: ToolDefinition, end: CallEnd, call: AttemptCall): AttemptEnd {
  switch (end.kind) {
    case 'answered': {
      const judged = judgeOutput(tool, end.value);
      if (judged.fits) return { outcome: 'succeeded', output: judged.output };
      // "Failed" would tell the chart that nothing happened; a write has happened.
      return tool.effect === 'write'
        ? { outcome: 'succeeded', output: judged.raw, invalid: judged.fault }
        : { outcome: 'failed', error: judged.fault };
    }
    case 'threw':
      if (isToolFailure(end.error)) return { outcome: 'failed', error: faultOf('TOOL_FAILED', end.error) };
      if (isNotExecuted(end.error)) return { outcome: 'not_executed', error: faultOf('TOOL_NOT_EXECUTED', end.error) };
      return { outcome: 'unknown', error: faultOf('TOOL_FAILED', end.error) };
    case 'timed_out': {
      const message = `${nameOf(tool, call)} gave no answer within its ${tool.timeoutMs} ms.`;
      return { outcome: 'unknown', error: { code: 'TOOL_TIMEOUT', message } };
    }
    default: {
      end.kind satisfies 'aborted';
      return { outcome: 'unknown', error: { code: 'TOOL_FAILED', message: `${nameOf(tool, call)} was aborted.` } };
    }
  }
}

function notSent(tool: ToolDefinition, call: AttemptCall): AttemptEnd {
  const why = call.signal.aborted ? 'it was aborted before it began' : 'its time was over before it began';
  const message = `${nameOf(tool, call)} was not called: ${why}.`;
  return { outcome: 'not_executed', error: { code: 'TOOL_NOT_EXECUTED', message }, notSent: true };
}

function nameOf(tool: ToolDefinition, call: AttemptCall): string {
  return `Attempt ${call.attempt} of tool '${tool.name}' (${call.operationId})`;
}
