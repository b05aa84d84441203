/** Asks the deployment whether an attempt may be made; what cannot be understood allows nothing. */
import type { Json } from '../records.ts';
import { storableText, thrownMessage } from './fault.ts';
import type { RunInfo } from './tool.ts';

export interface PolicyQuestion {
  run: RunInfo;
  tool: { name: string; version: string; effect: 'read' | 'write' };
  input: Json;
  operationId: string;
  /** When the operation was intended, by the store's clock. */
  intendedAtMs: number;
  /** Who caused the run, if known. */
  by: string | null;
}

export type PolicyVerdict = { allow: true } | { allow: false; reason: string; retryAtMs?: number | undefined };

export interface Policy {
  /** Stored with each run. */
  version: string;
  /** Asked before each attempt, also the first after a restart. */
  check(question: PolicyQuestion): Promise<PolicyVerdict> | PolicyVerdict;
}

export type PolicyAnswer =
  | { kind: 'allowed' }
  /** With `retryAtMs` the operation waits until then; without, the chart gets POLICY_DENIED. */
  | { kind: 'denied'; reason: string; retryAtMs?: number }
  /** It threw, or answered something else: the operation stays intended. */
  | { kind: 'threw'; message: string };

/** Never rejects. */
export async function askPolicy(policy: Policy, question: PolicyQuestion): Promise<PolicyAnswer> {
  try {
    const verdict: unknown = await policy.check({ ...question, input: structuredClone(question.input) });
    if (typeof verdict !== 'object' || verdict === null) return misunderstood();
    const { allow, reason, retryAtMs } = verdict as { allow?: unknown; reason?: unknown; retryAtMs?: unknown };
    if (allow === true) return { kind: 'allowed' };
    if (allow !== false) return misunderstood();
    const denied = {
      kind: 'denied',
      reason: storableText(typeof reason === 'string' ? reason : 'no reason given'),
    } as const;
    if (retryAtMs === undefined) return denied;
    return typeof retryAtMs === 'number' && Number.isFinite(retryAtMs) ? { ...denied, retryAtMs } : misunderstood();
  } catch (error) {
    return { kind: 'threw', message: storableText(thrownMessage(error)) };
  }
}

function misunderstood(): PolicyAnswer {
  return {
    kind: 'threw',
    message: 'policy.check answered neither { allow: true } nor { allow: false, reason, retryAtMs? }',
  };
}
