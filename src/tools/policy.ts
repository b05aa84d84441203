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

/** Never throws or rejects. A policy that answers at once is not waited for. */
export function askPolicy(policy: Policy, question: PolicyQuestion): PolicyAnswer | Promise<PolicyAnswer> {
  try {
    const asked: unknown = policy.check({ ...question, input: structuredClone(question.input) });
    if (typeof asked !== 'object' || asked === null || !('then' in asked)) return judge(asked);
    return Promise.resolve(asked).then(judge, threw);
  } catch (error) {
    return threw(error);
  }
}

function judge(verdict: unknown): PolicyAnswer {
  try {
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
    return threw(error);
  }
}

function threw(error: unknown): PolicyAnswer {
  return { kind: 'threw', message: storableText(thrownMessage(error)) };
}

function misunderstood(): PolicyAnswer {
  return {
    kind: 'threw',
    message: 'policy.check answered neither { allow: true } nor { allow: false, reason, retryAtMs? }',
  };
}
