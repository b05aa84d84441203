/** The chart of one vendor refund: verify, decide, refund, read back, compare, notify. */
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { toolError, type EventsOf } from '../../src/index.ts';
import type { refundEvents } from './events.ts';
import { isWithinLimit } from './money.ts';
import { order } from './orders.ts';
import { refundRequest, type RefundRequest } from './rows.ts';
import { LOCAL_PROVIDERS, orderAnswer, readBack, readBackAnswer, refundAnswer, refundTools } from './tools.ts';

export const refundContext = z.object({
  request: refundRequest,
  /** As the provider has it; null before it was read and when there is none. */
  order: order.nullable(),
  refundId: z.string().nullable(),
  /** The refund as the provider shows it afterwards. */
  refund: readBack,
  notified: z.boolean(),
  outcome: z.enum(['open', 'done', 'declined', 'review']),
  /** Why it ended as it did; empty when nothing was wrong. */
  reason: z.string(),
});

export interface RefundOutput {
  outcome: 'open' | 'done' | 'declined' | 'review';
  orderId: string;
  refundId: string | null;
  notified: boolean;
  reason: string;
}

export const refundMachine = setup({
  // XState reads the types alone.
  // oxlint-disable-next-line typescript/no-unnecessary-type-assertion, typescript/no-unsafe-type-assertion
  types: {} as {
    context: z.infer<typeof refundContext>;
    input: RefundRequest;
    output: RefundOutput;
    events: EventsOf<typeof refundEvents>;
  },
  actors: refundTools(LOCAL_PROVIDERS),
  guards: {
    orderIsUnknown: ({ context }) => context.order === null,
    orderIsClosed: ({ context }) => context.order?.refundable === false,
    currencyDiffers: ({ context }) => context.order?.currency !== context.request.currency,
    amountDiffers: ({ context }) => context.order?.amountCents !== context.request.amountCents,
    isOverLimit: ({ context: { request } }) => !isWithinLimit(request.amountCents, request.currency),
    /** The provider said no for good, so nothing happened; every other error leaves something to look at. */
    providerRefused: ({ event }) => 'error' in event && toolError(event.error).code === 'TOOL_FAILED',
    refundIsAsAsked: ({ context: { refund, request } }) =>
      refund?.orderId === request.orderId &&
      refund.amountCents === request.amountCents &&
      refund.currency === request.currency,
  },
  actions: {
    keepOrder: assign(({ event }) => ({ order: orderAnswer.parse(outputOf(event)).order })),
    keepRefundId: assign(({ event }) => ({ refundId: refundAnswer.parse(outputOf(event)).refundId })),
    keepRefund: assign(({ event }) => ({ refund: readBackAnswer.parse(outputOf(event)).refund })),
    markNotified: assign({ notified: true }),
    note: assign((_, { reason }: { reason: string }) => ({ reason })),
    noteSender: assign(({ event }, { what }: { what: string }) => ({
      reason: ('by' in event ? `${what} by ${event.by}` : what) + ('why' in event ? `: ${event.why}` : ''),
    })),
    noteError: assign(({ event }, { what }: { what: string }) => ({
      reason: 'error' in event ? `${what}: ${toolError(event.error).code} ${toolError(event.error).message}` : what,
    })),
    conclude: assign((_, { outcome }: { outcome: 'done' | 'declined' | 'review' }) => ({ outcome })),
  },
  delays: { heldTooLong: 604_800_000 },
}).createMachine({
  id: 'refund',
  context: ({ input }) => ({
    request: input,
    order: null,
    refundId: null,
    refund: null,
    notified: false,
    outcome: 'open',
    reason: '',
  }),
  initial: 'verifying',
  states: {
    verifying: {
      description: 'Reads the order. Nothing has happened yet, so it can still be held or cancelled.',
      invoke: {
        id: 'readOrder',
        src: 'readOrder',
        input: ({ context }) => ({ orderId: context.request.orderId }),
        onDone: { target: 'deciding', actions: 'keepOrder' },
        onError: { target: 'review', actions: { type: 'noteError', params: { what: 'the order could not be read' } } },
      },
      on: {
        HOLD: { target: 'held', actions: { type: 'noteSender', params: { what: 'held' } } },
        CANCEL: { target: 'declined', actions: { type: 'noteSender', params: { what: 'cancelled' } } },
        DEADLINE_EXCEEDED: { target: 'declined', actions: { type: 'note', params: { reason: 'too late' } } },
      },
    },
    held: {
      description: 'Somebody wants to look first. The order is read anew afterwards.',
      on: {
        RESUME: { target: 'verifying', actions: { type: 'note', params: { reason: '' } } },
        CANCEL: { target: 'declined', actions: { type: 'noteSender', params: { what: 'cancelled' } } },
        DEADLINE_EXCEEDED: { target: 'declined', actions: { type: 'note', params: { reason: 'too late' } } },
      },
      after: {
        heldTooLong: { target: 'review', actions: { type: 'note', params: { reason: 'held for a week' } } },
      },
    },
    deciding: {
      description: 'Passes at once: the row must be what the provider has, and small enough.',
      always: [
        {
          guard: 'orderIsUnknown',
          target: 'declined',
          actions: { type: 'note', params: { reason: 'the provider has no such order' } },
        },
        {
          guard: 'orderIsClosed',
          target: 'declined',
          actions: { type: 'note', params: { reason: 'the order may not be refunded' } },
        },
        {
          guard: 'currencyDiffers',
          target: 'declined',
          actions: { type: 'note', params: { reason: 'the order was paid in another currency' } },
        },
        {
          guard: 'amountDiffers',
          target: 'declined',
          actions: { type: 'note', params: { reason: 'the order was paid with another amount' } },
        },
        {
          guard: 'isOverLimit',
          target: 'review',
          actions: { type: 'note', params: { reason: 'the amount is over the limit' } },
        },
        { target: 'refunding' },
      ],
    },
    refunding: {
      description: 'Moves the money, once. Whatever happens here is settled before the refund goes on.',
      invoke: {
        id: 'issueRefund',
        src: 'issueRefund',
        input: ({ context: { request } }) => ({
          orderId: request.orderId,
          amountCents: request.amountCents,
          currency: request.currency,
        }),
        onDone: { target: 'checking', actions: 'keepRefundId' },
        onError: [
          {
            guard: 'providerRefused',
            target: 'declined',
            actions: { type: 'noteError', params: { what: 'the provider refused' } },
          },
          { target: 'review', actions: { type: 'noteError', params: { what: 'not refunded' } } },
        ],
      },
    },
    checking: {
      description: 'Reads the refund back, from the provider and not from its answer.',
      invoke: {
        id: 'readRefund',
        src: 'readRefund',
        input: ({ context }) => ({ refundId: context.refundId ?? '' }),
        onDone: { target: 'comparing', actions: 'keepRefund' },
        onError: {
          target: 'review',
          actions: { type: 'noteError', params: { what: 'refunded, but it could not be read back' } },
        },
      },
    },
    comparing: {
      description: 'Passes at once: order, amount and currency must be what was asked for.',
      always: [
        { guard: 'refundIsAsAsked', target: 'notifying' },
        {
          target: 'review',
          actions: { type: 'note', params: { reason: 'refunded, but not what was asked for' } },
        },
      ],
    },
    notifying: {
      description: 'Tells the vendor. The money has moved rightly, so a mail that cannot be sent changes no outcome.',
      invoke: {
        id: 'notifyVendor',
        src: 'notifyVendor',
        input: ({ context: { request, refundId } }) => ({
          orderId: request.orderId,
          amountCents: request.amountCents,
          currency: request.currency,
          refundId: refundId ?? '',
          vendor: request.vendor,
          email: request.email,
        }),
        onDone: { target: 'done', actions: 'markNotified' },
        onError: {
          target: 'done',
          actions: { type: 'noteError', params: { what: 'the vendor was not told' } },
        },
      },
    },
    done: { type: 'final', entry: { type: 'conclude', params: { outcome: 'done' } } },
    declined: { type: 'final', entry: { type: 'conclude', params: { outcome: 'declined' } } },
    review: { type: 'final', entry: { type: 'conclude', params: { outcome: 'review' } } },
  },
  output: ({ context: { outcome, request, refundId, notified, reason } }) => ({
    outcome,
    orderId: request.orderId,
    refundId,
    notified,
    reason,
  }),
});

/** What a tool returned, as `onDone` brings it. */
function outputOf(event: object): unknown {
  return 'output' in event ? event.output : null;
}
