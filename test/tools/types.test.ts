/** The types of API.md section 2. Most of this file is checked by tsc; the tests only run it. */
import { expect, expectTypeOf, test } from 'vitest';
import { assign, createActor, setup } from 'xstate';
import { z } from 'zod';
import { isPawlError } from '../../src/errors.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import { approval } from '../../src/tools/approval.ts';
import { decide } from '../../src/tools/decide.ts';
import { didNotHappen, happened, toolError, unknown } from '../../src/tools/outcome.ts';
import { tool } from '../../src/tools/tool.ts';

const events = defineEvents({
  PLAN: z.object({ amountCents: z.int().positive(), reason: z.string() }),
  DECLINE: { schema: z.object({}) },
  CANCEL: z.object({ by: z.string() }),
});

const chargeBack = tool({
  name: 'payments.chargeBack',
  version: '1',
  effect: 'write',
  input: z.object({ refundId: z.string() }),
  output: z.object({}),
  timeoutMs: 30_000,
  execute: async () => ({}),
});

const refundApproval = approval({
  name: 'refundApproval',
  version: '1',
  covers: z.object({ orderId: z.string(), amountCents: z.int() }),
  approvers: { roles: ['finance'], quorum: 1, notRequester: true },
  expiresInMs: 86_400_000,
  authorize: async ({ by, run }) => by !== run.createdBy,
  resourceVersion: async ({ covers }) => {
    expectTypeOf(covers).toEqualTypeOf<{ orderId: string; amountCents: number }>();
    return 'v17';
  },
});

const issueRefund = tool({
  name: 'payments.refund',
  version: '1',
  effect: 'write',
  input: z.object({ orderId: z.string(), amountCents: z.int().positive(), currency: z.string().default('EUR') }),
  output: z.object({ refundId: z.string(), fee: z.int().default(0) }),
  key: ({ input }) => [input.orderId],
  scope: 'run',
  idempotent: true,
  timeoutMs: 30_000,
  settleAfterMs: 0,
  reconcileForMs: 86_400_000,
  retry: { maxAttempts: 3, minDelayMs: 200, maxDelayMs: 30_000 },
  execute: async ({ input, operationId, attempt, signal, run, artifacts }) => {
    expectTypeOf(input).toEqualTypeOf<{ orderId: string; amountCents: number; currency: string }>();
    expectTypeOf(operationId).toEqualTypeOf<string>();
    expectTypeOf(attempt).toEqualTypeOf<number>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(run.tenant).toEqualTypeOf<string>();
    expectTypeOf(artifacts).toBeUnknown();
    return { refundId: '…' };
  },
  reconcile: async ({ input, operationId }) => {
    if (input.orderId === operationId) return unknown('why');
    return operationId === '' ? didNotHappen({ final: true }) : happened({ refundId: '…' });
  },
  compensate: {
    tool: chargeBack,
    input: ({ input, output }) => {
      expectTypeOf(input.currency).toEqualTypeOf<string>();
      expectTypeOf(output).toEqualTypeOf<{ refundId: string; fee: number }>();
      return { refundId: output.refundId };
    },
  },
  requires: refundApproval,
  outbound: true,
  sensitive: ['input.cardToken'],
});

const plan = decide({
  name: 'refund.plan',
  version: '3',
  proposals: events.pick('PLAN', 'DECLINE'),
  model: 'gpt-4o-mini',
  maxAttempts: 3,
  maxOutputTokens: 500,
  tokenBudget: 4_000,
  timeoutMs: 60_000,
  prompt: ({ input, run, proposals, refusals, summary }) => [
    { role: 'system', content: JSON.stringify([input, run.runId, proposals, refusals, summary]) },
  ],
});

interface Refund {
  orderId: string;
  refundId: string | null;
}

const machine = setup({
  types: {
    context: {} as Refund,
    input: {} as { orderId: string },
    events: {} as EventsOf<typeof events>,
  },
  actors: { plan, refundApproval, issueRefund },
}).createMachine({
  id: 'refund',
  context: ({ input }) => ({ orderId: input.orderId, refundId: null }),
  initial: 'planning',
  states: {
    // Any interface is fit for the input of a decision: it need not have an index signature.
    planning: {
      invoke: {
        src: 'plan',
        input: ({ context }) => context,
        onDone: {
          target: 'failed',
          actions: ({ event }) => {
            const { proposal } = event.output;
            expectTypeOf(proposal.type).toEqualTypeOf<'PLAN' | 'DECLINE'>();
            if (proposal.type === 'PLAN') expectTypeOf(proposal.amountCents).toEqualTypeOf<number>();
          },
        },
      },
      on: { PLAN: 'approving' },
    },
    approving: {
      invoke: {
        src: 'refundApproval',
        input: ({ context }) => ({ covers: { orderId: context.orderId, amountCents: 5 }, note: 'please' }),
        onDone: {
          target: 'refunding',
          actions: ({ event }) => {
            expectTypeOf(event.output).toEqualTypeOf<{ verdict: 'approved'; by: string[]; requestId: string }>();
          },
        },
      },
    },
    refunding: {
      invoke: {
        src: 'issueRefund',
        input: ({ context }) => ({ orderId: context.orderId, amountCents: 5 }),
        onDone: { target: 'done', actions: assign({ refundId: ({ event }) => event.output.refundId }) },
        onError: {
          target: 'failed',
          guard: ({ event }) => toolError(event.error).code === 'TOOL_FAILED',
        },
      },
    },
    done: { type: 'final' },
    failed: { type: 'final' },
  },
});

test('API.md section 2 compiles, and its logic refuses a bare createActor', async () => {
  const errors: unknown[] = [];
  const actor = createActor(machine, { input: { orderId: 'o1' } });
  actor.subscribe({ error: (error) => errors.push(error) });
  actor.start();
  expect(actor.getSnapshot().status).toBe('error');
  expect(isPawlError(actor.getSnapshot().error, 'TOOL_OUTSIDE_RUNTIME')).toBe(true);
});

const spec = {
  name: 't',
  version: '1',
  effect: 'write',
  input: z.object({ orderId: z.string() }),
  output: z.object({ refundId: z.string() }),
  timeoutMs: 1000,
} as const;
const execute = async (): Promise<{ refundId: string }> => ({ refundId: 'x' });

/** Never run: each line must be refused by the compiler. */
export function wrongCases(): void {
  // @ts-expect-error a write without timeoutMs
  tool({ ...spec, timeoutMs: undefined, execute });
  // @ts-expect-error execute returns what does not fit output
  tool({ ...spec, execute: async () => ({ refundId: 7 }) });
  // @ts-expect-error reconcile says happened with what does not fit output
  tool({ ...spec, execute, reconcile: async () => happened({ refundId: 7 }) });
  // @ts-expect-error reconcile returns a bare value
  tool({ ...spec, execute, reconcile: async () => ({ refundId: 'x' }) });
  // @ts-expect-error a read has nothing to reconcile
  tool({ ...spec, effect: 'read', execute, reconcile: async () => didNotHappen() });
  // @ts-expect-error the key reads what the input does not have
  tool({ ...spec, execute, key: ({ input }) => [input.customerId] });
  // @ts-expect-error a key holds JSON values
  tool({ ...spec, execute, key: () => [new Date()] });
  // @ts-expect-error the compensating tool needs a refundId
  tool({ ...spec, execute, compensate: { tool: chargeBack, input: () => ({ orderId: 'x' }) } });
  // @ts-expect-error requires an approval
  tool({ ...spec, execute, requires: chargeBack });
  // @ts-expect-error no such scope
  tool({ ...spec, execute, scope: 'world' });
  // @ts-expect-error an approval needs authorize: without a policy it fails closed
  approval({ name: 'a', version: '1', covers: z.object({}), approvers: { roles: ['x'] }, expiresInMs: 1000 });
  // @ts-expect-error a decision needs a prompt
  decide({ name: 'd', version: '1', proposals: events.pick('PLAN') });
  // @ts-expect-error no such event
  decide({ name: 'd', version: '1', proposals: events.pick('REFUND'), prompt: () => [] });

  setup({ actors: { issueRefund } }).createMachine({
    // @ts-expect-error the input of the invoke lacks amountCents
    invoke: { src: 'issueRefund', input: { orderId: 'o1' } },
  });
}

test('a compensation by name takes any input, and a read needs no time-out', () => {
  expect(
    tool({ ...spec, execute, compensate: { tool: 'charge.back', input: ({ output }) => [output.refundId] } }),
  ).toBeDefined();
  const { timeoutMs: _unused, ...untimed } = spec;
  expect(tool({ ...untimed, effect: 'read', execute })).toBeDefined();
});
