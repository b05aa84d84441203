/** A person says how an operation ended whose outcome nobody could find out. */
import { findNonJson } from '../json.ts';
import { PawlError } from '../errors.ts';
import { receiptEvent } from '../persistence/door-entries.ts';
import type { StoredRun } from '../persistence/store.ts';
import type { Json, Operation, Receipt } from '../records.ts';
import { awaitVerdict, loadReadable, type DeliveryContext, type Verdict } from './deliver.ts';

export interface Resolution {
  as: 'succeeded' | 'failed' | 'not_executed';
  /** For `succeeded`: what the tool would have returned. */
  output?: unknown;
  by: string;
  evidence: string;
  waitMs?: number;
}

const DEFAULT_WAIT_MS = 5_000;

/**
 * Stores the receipt as a fact, whoever holds the lease; allowed for operations that are unknown or escalated.
 * @throws RUN_NOT_FOUND, OPERATION_NOT_FOUND, OPERATION_SETTLED, TOOL_OUTPUT_INVALID, INVALID_ARGUMENT
 */
export async function resolveOperation(
  context: DeliveryContext,
  runId: string,
  operationId: string,
  resolution: Resolution,
): Promise<Verdict> {
  const { store, hint } = context;
  const { as, by, evidence } = resolution;
  if (!['succeeded', 'failed', 'not_executed'].includes(as)) {
    throw new PawlError('INVALID_ARGUMENT', `resolve as '${as as string}': write succeeded, failed or not_executed.`);
  }
  const run = await loadReadable(store, runId);
  const operation = run.record.operations[operationId];
  if (!operation) {
    const settled = await store.receipt(runId, operationId);
    if (settled) throw alreadySettled(runId, operationId, settled.outcome, as);
    const open = Object.keys(run.record.operations);
    throw new PawlError(
      'OPERATION_NOT_FOUND',
      `Run ${runId} has no open operation ${operationId}; open: ${open.join(', ') || 'none'}.`,
      {
        details: { runId, operationId, open },
      },
    );
  }
  if (operation.status !== 'unknown' && operation.status !== 'escalated') {
    throw alreadySettled(runId, operationId, operation.status, as);
  }
  const fact = run.facts.receipts[operationId];
  if (fact && fact.outcome !== as) throw alreadySettled(runId, operationId, fact.outcome, as);
  const receipt: Receipt = {
    operationId,
    attempt: operation.attemptCount,
    outcome: as,
    via: 'resolve',
    by,
    evidence,
    atMs: await store.nowMs(),
    ...(as === 'succeeded'
      ? { output: outputOf(context, run, operation, resolution.output) }
      : { error: { code: as === 'failed' ? 'TOOL_FAILED' : 'TOOL_NOT_EXECUTED', message: evidence } }),
  };
  const { eventId, ...event } = receiptEvent(
    fact ? { ...fact, attempt: receipt.attempt, via: 'resolve', by, evidence } : receipt,
  );
  // A stored outcome that another attempt contradicts is a fact already: only the person's word is new.
  const item = fact ? { ...event, eventId: `resolve:${operationId}:${receipt.attempt}` } : { ...event, eventId };
  const stored = fact ? (await store.accept(runId, item)).kind : await store.receive(runId, receipt);
  if (stored !== 'stored' && stored !== 'accepted') throw alreadySettled(runId, operationId, stored, as);
  hint(runId);
  return awaitVerdict(context, run, item.eventId, resolution.waitMs ?? DEFAULT_WAIT_MS);
}

function outputOf(context: DeliveryContext, run: StoredRun, operation: Operation, given: unknown): Json {
  const agent = run.record && context.registry.find(run.record.agent, run.record.agentVersion);
  const tool = agent?.toolsByName.get(operation.tool);
  const parsed = tool ? tool.output.safeParse(given) : { success: true as const, data: given ?? null };
  const problem = parsed.success ? findNonJson(parsed.data, 'output') : null;
  if (parsed.success && problem === null) return parsed.data as Json;
  const why = parsed.success ? `${problem?.path} is ${problem?.found}` : parsed.error.message;
  throw new PawlError(
    'TOOL_OUTPUT_INVALID',
    `The output given for operation ${operation.operationId} does not fit tool '${operation.tool}': ${why}`,
    { details: { runId: run.runId, operationId: operation.operationId, tool: operation.tool } },
  );
}

function alreadySettled(runId: string, operationId: string, stored: string, asked: string): PawlError {
  return new PawlError(
    'OPERATION_SETTLED',
    `Operation ${operationId} of run ${runId} is ${stored}; it cannot be resolved as ${asked}.`,
    { details: { runId, operationId, stored, asked } },
  );
}
