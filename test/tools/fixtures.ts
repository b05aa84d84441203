import { z } from 'zod';
import type { Clock } from '../../src/clock.ts';
import { systemClock } from '../../src/clock.ts';
import type { AttemptCall } from '../../src/tools/attempt.ts';
import { tool, toolOf, type ExecuteContext, type RunInfo, type ToolDefinition } from '../../src/tools/tool.ts';

export const run: RunInfo = {
  runId: 'r1',
  tenant: 't1',
  agent: 'refund',
  agentVersion: 1,
  sequence: 3,
  createdBy: 'ann',
  subject: null,
  labels: {},
  traceId: 'trace',
};

export interface RefundSpec {
  effect?: 'read' | 'write';
  name?: string;
  scope?: 'run' | 'tenant';
  key?: ((arg: { input: { orderId: string } }) => never[]) | null;
  sensitive?: string[];
  output?: z.ZodType;
  execute?: (ctx: ExecuteContext<{ orderId: string }>) => unknown;
  reconcile?: (ctx: { operationId: string; signal: AbortSignal; attempt: number }) => unknown;
}

/** A tool whose functions may do what the types of authors forbid. */
export function refund(spec: RefundSpec = {}): ToolDefinition {
  const definition = toolOf(
    tool({
      name: spec.name ?? 'payments.refund',
      version: '1',
      effect: (spec.effect ?? 'write') as 'write',
      input: z.object({ orderId: z.string() }),
      output: spec.output ?? z.object({ refundId: z.string() }),
      timeoutMs: 1000,
      scope: spec.scope,
      key: spec.key === null ? undefined : (spec.key ?? (({ input }) => [input.orderId])),
      sensitive: spec.sensitive,
      execute: (spec.execute ?? (async () => ({ refundId: 'rf_1' }))) as () => Promise<never>,
      reconcile: spec.reconcile as undefined,
    }),
  );
  if (!definition) throw new TypeError('tool() made no tool');
  return definition;
}

export function attemptCall(change: Partial<AttemptCall> = {}): AttemptCall {
  return {
    input: { orderId: 'o1' },
    operationId: 'op_1',
    attempt: 1,
    run,
    artifacts: null,
    signal: new AbortController().signal,
    timeoutMs: 1000,
    clock: systemClock,
    ...change,
  };
}

/** A clock whose sleeps end when the test says so. */
export function steppedClock(): Clock & { ring(): void; sleeps: number[]; open(): number } {
  const waiting = new Set<() => void>();
  const sleeps: number[] = [];
  return {
    nowMs: () => 0,
    monotonicMs: () => 0,
    sleeps,
    open: () => waiting.size,
    ring: () => {
      for (const wake of waiting) wake();
    },
    sleep: (delayMs, signal) =>
      new Promise((resolve) => {
        sleeps.push(delayMs);
        const wake = (): void => {
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
        signal?.addEventListener('abort', wake);
      }),
  };
}
