/** What a reconcile answer allows. An absence is judged by when the reconcile call BEGAN (DESIGN 3.2). */
import type { Fault, Json, Receipt } from '../records.ts';
import { backoffMs } from '../tools/backoff.ts';
import type { ReconcileAnswer } from '../tools/reconcile.ts';
import type { Draft } from './draft.ts';
import { windowEndMs } from './operations.ts';
import { needsHuman, pastDeadline, takeLate, takeReceipt } from './receipts.ts';

export interface Reconciled {
  operationId: string;
  attempt: number;
  answer: ReconcileAnswer;
  /** Store time before the call. */
  beganAtMs: number;
}

export function takeReconciled(draft: Draft, reconciled: Reconciled, random: number): void {
  const { operationId, attempt, answer, beganAtMs } = reconciled;
  const operation = draft.operation(operationId);
  if (!operation && answer.answer === 'happened') takeLate(draft, { operationId, attempt, outcome: 'succeeded' });
  if (!operation || operation.status !== 'unknown' || operation.attemptCount !== attempt) return;
  const tool = draft.base.agent.toolsByName.get(operation.tool);
  if (!tool) return;
  const fields: { [field: string]: Json } = { operationId, attempt, answer: answer.answer };
  if (answer.answer === 'unknown') fields['reason'] = answer.reason;
  draft.entry('reconciled', fields, { operationId });
  const receipt = (outcome: Receipt['outcome'], rest: { output?: Json; error?: Fault } = {}): Receipt => ({
    operationId,
    attempt,
    outcome,
    via: 'reconcile',
    atMs: draft.nowMs,
    ...rest,
  });
  const settled = { random, stored: false };
  switch (answer.answer) {
    case 'happened': {
      const invalid = answer.invalid === undefined ? {} : { invalid: answer.invalid };
      return takeReceipt(draft, receipt('succeeded', { output: answer.output }), { ...settled, ...invalid });
    }
    case 'failed':
      return takeReceipt(draft, receipt('failed', { error: answer.error }), settled);
    case 'absent': {
      const endMs = windowEndMs(operation, tool);
      if (answer.final || beganAtMs >= endMs) return takeReceipt(draft, receipt('not_executed'), settled);
      const wanted = operation.joined.length > 0 && draft.record.cancel === null && !pastDeadline(draft);
      if (tool.idempotent && wanted) return takeReceipt(draft, receipt('not_executed'), { ...settled, soft: true });
      draft.changeOperation(operationId, {
        notBeforeMs: endMs,
        reason: 'not found at the provider, but it may still arrive',
      });
      return;
    }
    case 'unknown': {
      const reconciles = operation.reconciles + 1;
      const { reason } = answer;
      draft.changeOperation(operationId, {
        reconciles,
        reason: `the provider could not say: ${reason}`,
        notBeforeMs: draft.nowMs + backoffMs(tool.retry, Math.min(reconciles, 30), random),
      });
      const sinceMs = operation.unknownSinceMs ?? draft.nowMs;
      if (draft.nowMs - sinceMs >= tool.reconcileForMs) needsHuman(draft, operationId, 'unknown_exhausted', reason);
    }
  }
}
