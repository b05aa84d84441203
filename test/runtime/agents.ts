/** Small agents for the runtime's tests. */
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { defineAgent } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import { tool } from '../../src/tools/tool.ts';
import type { Provider } from './provider.ts';

export type Recovery = 'query' | 'both' | 'repeat' | 'neither';

interface ChargeOptions {
  recovery?: Recovery;
  timeoutMs?: number;
  name?: string;
  scope?: 'run' | 'tenant';
  maxAttempts?: number;
  maxDelayMs?: number;
}

const orderInput = z.object({ order: z.string(), amount: z.int() });
const receipt = z.object({ id: z.string() });

/** A write that asks `provider`, recoverable as told. */
export function chargeTool(provider: Provider, options: ChargeOptions = {}) {
  const {
    recovery = 'query',
    timeoutMs = 300,
    name = 'charge',
    scope = 'run',
    maxAttempts = 3,
    maxDelayMs = 20,
  } = options;
  const asks = recovery === 'query' || recovery === 'both';
  return tool({
    name,
    version: '1',
    effect: 'write',
    scope,
    input: orderInput,
    output: receipt,
    key: ({ input }) => [input.order],
    idempotent: recovery === 'both' || recovery === 'repeat',
    timeoutMs,
    retry: { maxAttempts, minDelayMs: 5, maxDelayMs },
    execute: ({ operationId, input, signal }) => provider.request(operationId, `${name}:${input.order}`, signal),
    reconcile: asks ? ({ operationId }) => provider.query(operationId) as never : undefined,
  });
}

/** A read; `answers` are given in order, an Error is thrown; then `{ found: true }`. */
export function lookupTool(answers: (Error | { found: boolean })[] = [], calls: string[] = []) {
  return tool({
    name: 'lookup',
    version: '1',
    effect: 'read',
    input: z.object({ order: z.string() }),
    output: z.object({ found: z.boolean() }),
    timeoutMs: 300,
    retry: { maxAttempts: 3, minDelayMs: 5, maxDelayMs: 20 },
    execute: async ({ operationId }) => {
      calls.push(operationId);
      const answer = answers.shift() ?? { found: true };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
}

export const threeStepEvents = defineEvents({
  GO: z.object({ amount: z.int().positive() }),
  CANCEL: z.object({ by: z.string() }),
  LATER: { schema: z.object({ note: z.string() }), whenIllegal: 'defer' },
  NOISE: { schema: z.object({}), whenIllegal: 'drop' },
});

interface ThreeStepContext {
  order: string;
  amount: number;
  charge: string | null;
  mail: string | null;
  notes: string[];
  code: string | null;
}

/** idle → looking (read) → charging (write) → mailing (write) → done; failed keeps the code. */
export function threeStepAgent(parts: {
  lookup?: ReturnType<typeof lookupTool>;
  charge: ReturnType<typeof chargeTool>;
  mail?: ReturnType<typeof chargeTool>;
  version?: number;
}) {
  const { lookup = lookupTool(), charge, version = 1 } = parts;
  const machine = setup({
    types: {} as {
      context: ThreeStepContext;
      input: { order: string; amount: number };
      output: { charge: string | null; mail: string | null; code: string | null; notes: string[] };
      events: EventsOf<typeof threeStepEvents>;
    },
    actors: { lookup, charge, mail: parts.mail ?? charge },
    actions: {
      keepCode: assign(({ event }) => ({
        code: (event as unknown as { error?: { code: string } }).error?.code ?? null,
      })),
    },
  }).createMachine({
    id: 'threeStep',
    initial: 'idle',
    context: ({ input }) => ({ ...input, charge: null, mail: null, notes: [], code: null }),
    states: {
      idle: {
        on: {
          GO: [
            {
              guard: ({ event }) => event.amount <= 1000,
              target: 'looking',
              actions: assign({ amount: ({ event }) => event.amount }),
            },
          ],
          CANCEL: 'cancelled',
        },
      },
      looking: {
        invoke: {
          src: 'lookup',
          input: ({ context }) => ({ order: context.order }),
          onDone: 'charging',
          onError: { target: 'failed', actions: 'keepCode' },
        },
        on: { CANCEL: 'cancelled' },
      },
      charging: {
        invoke: {
          src: 'charge',
          input: ({ context }) => ({ order: context.order, amount: context.amount }),
          onDone: {
            target: parts.mail ? 'mailing' : 'done',
            actions: assign({ charge: ({ event }) => event.output.id }),
          },
          onError: { target: 'failed', actions: 'keepCode' },
        },
        on: { CANCEL: 'cancelled' },
      },
      mailing: {
        invoke: {
          src: 'mail',
          input: ({ context }) => ({ order: context.order, amount: context.amount }),
          onDone: { target: 'done', actions: assign({ mail: ({ event }) => event.output.id }) },
          onError: { target: 'failed', actions: 'keepCode' },
        },
        on: {
          LATER: { actions: assign({ notes: ({ context, event }) => [...context.notes, event.note] }) },
        },
      },
      done: { type: 'final' },
      failed: { type: 'final' },
      cancelled: { type: 'final' },
    },
    output: ({ context }) => ({
      charge: context.charge,
      mail: context.mail,
      code: context.code,
      notes: context.notes,
    }),
  });
  return defineAgent({
    name: 'threeStep',
    version,
    machine,
    events: threeStepEvents,
    input: z.object({ order: z.string(), amount: z.int() }),
  });
}
