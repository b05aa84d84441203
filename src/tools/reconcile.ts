/** Asks a provider, by operationId, what became of an operation whose outcome is unknown. */
import type { Clock } from '../clock.ts';
import type { Fault, Json } from '../records.ts';
import { callWithin, type CallEnd } from './call-within.ts';
import { faultOf, preview, storableText, thrownMessage } from './fault.ts';
import { asReconciled, isToolFailure } from './outcome.ts';
import type { RunInfo, ToolDefinition } from './tool.ts';
import { judgeOutput } from './value.ts';

export interface ReconcileCall {
  input: Json;
  operationId: string;
  /** The latest attempt written. */
  attempt: number;
  run: RunInfo;
  signal: AbortSignal;
  /** For this question alone; > 0. */
  timeoutMs: number;
  clock: Clock;
}

export type ReconcileAnswer =
  /** `invalid`: the value does not fit `output`; the effect is real, `output` is the raw JSON value or null. */
  | { answer: 'happened'; output: Json; invalid?: Fault }
  /** Not at the provider now. Whether that is believed is for the runtime to say; `final`: it cannot arrive later. */
  | { answer: 'absent'; final: boolean }
  /** `reconcile` threw ToolFailure: the provider refused the operation for good. */
  | { answer: 'failed'; error: Fault }
  | { answer: 'unknown'; reason: string };

/** Asks once. Never rejects: any throw but ToolFailure, a time-out and an abort are `unknown`. */
export async function askReconcile(tool: ToolDefinition, call: ReconcileCall): Promise<ReconcileAnswer> {
  const { reconcile } = tool;
  if (reconcile === null) return { answer: 'unknown', reason: `tool '${tool.name}' has no reconcile` };
  if (call.signal.aborted || !(call.timeoutMs > 0)) return { answer: 'unknown', reason: 'aborted before it was asked' };
  const { operationId, attempt, run, signal, timeoutMs, clock } = call;
  try {
    const input = structuredClone(call.input);
    const end = await callWithin({
      call: (toTool) => reconcile({ input, operationId, attempt, signal: toTool, run }),
      signal,
      timeoutMs,
      clock,
      leaveOnAbort: true,
    });
    return answerOf(tool, end, timeoutMs);
  } catch (error) {
    return { answer: 'unknown', reason: storableText(thrownMessage(error)) };
  }
}

function answerOf(tool: ToolDefinition, end: CallEnd, timeoutMs: number): ReconcileAnswer {
  if (end.kind === 'answered') return readAnswer(tool, end.value);
  if (end.kind === 'timed_out') return { answer: 'unknown', reason: `reconcile gave no answer within ${timeoutMs} ms` };
  if (end.kind === 'aborted') return { answer: 'unknown', reason: 'reconcile was aborted' };
  if (isToolFailure(end.error)) return { answer: 'failed', error: faultOf('TOOL_FAILED', end.error) };
  return { answer: 'unknown', reason: storableText(`reconcile threw: ${thrownMessage(end.error)}`) };
}

function readAnswer(tool: ToolDefinition, value: unknown): ReconcileAnswer {
  const answer = asReconciled(value);
  if (answer === null) {
    const found = preview(value).slice(0, 200).toWellFormed();
    return { answer: 'unknown', reason: `reconcile returned ${found}; return happened(), didNotHappen() or unknown()` };
  }
  if (answer.kind === 'absent') return { answer: 'absent', final: answer.final };
  if (answer.kind === 'unknown') return { answer: 'unknown', reason: storableText(answer.why) };
  const judged = judgeOutput(tool, answer.output);
  if (judged.fits) return { answer: 'happened', output: judged.output };
  return { answer: 'happened', output: judged.raw, invalid: judged.fault };
}
