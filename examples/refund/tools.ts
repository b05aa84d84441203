/** What the refund agent can do in the world: two reads of the payment provider, the refund, and the notice. */
import { z } from 'zod';
import { didNotHappen, happened, tool, unknown } from '../../src/index.ts';
import { createMailClient, messageIdOf } from './mail-client.ts';
import { formatAmount } from './money.ts';
import { order } from './orders.ts';
import { createPaymentClient } from './payment-client.ts';
import { TOOL_TIMINGS, type ToolTimings } from './timings.ts';

export interface RefundToolOptions {
  paymentUrl: string;
  smtpUrl: string;
  mailQueryUrl: string;
  /** Whether the providers answer a repeated operation id with its first outcome. */
  dedupe: boolean;
  /** Whether the writes can be asked for; the demo switches it off to show what is lost without it. */
  reconcile: boolean;
  timings?: ToolTimings;
  /** Connections to the mail server that are opened before they are needed; default none. */
  mailSocketsAhead?: number;
  /** How long the provider shall wait before it does this call, so that the caller can be killed meanwhile. */
  crashHoldMs?: (call: { tool: string; runId: string }) => number;
}

/** Where the two servers are when somebody starts them by hand. */
export const LOCAL_PROVIDERS: RefundToolOptions = {
  paymentUrl: 'http://127.0.0.1:4700',
  smtpUrl: 'smtp://127.0.0.1:4725',
  mailQueryUrl: 'http://127.0.0.1:4726',
  dedupe: true,
  reconcile: true,
};

/** A call whose worker was killed counts as an attempt, so a demo of killing needs many. */
const RETRY = { maxAttempts: 8, minDelayMs: 50, maxDelayMs: 400 };

const money = { orderId: z.string(), amountCents: z.int().positive(), currency: z.string() };
export const orderAnswer = z.object({ order: order.nullable() });
export const refundAnswer = z.object({ refundId: z.string() });
export const readBack = z.object({ orderId: z.string(), amountCents: z.int(), currency: z.string() }).nullable();
export const readBackAnswer = z.object({ refund: readBack });

// The chart takes its types from what this returns.
// oxlint-disable-next-line typescript/explicit-module-boundary-types
export function refundTools(options: RefundToolOptions) {
  const { dedupe, crashHoldMs = () => 0, timings = TOOL_TIMINGS } = options;
  const payments = createPaymentClient(options.paymentUrl);
  const mails = createMailClient(options.smtpUrl, options.mailQueryUrl, options.mailSocketsAhead);
  const { readTimeoutMs, ...writeTimings } = timings;

  const readOrder = tool({
    name: 'payments.order',
    version: '1',
    effect: 'read',
    input: z.object({ orderId: z.string() }),
    output: orderAnswer,
    timeoutMs: readTimeoutMs,
    retry: RETRY,
    execute: async ({ input, signal }) => ({ order: await payments.order(input.orderId, signal) }),
  });

  const issueRefund = tool({
    name: 'payments.refund',
    version: '1',
    effect: 'write',
    input: z.object(money),
    output: refundAnswer,
    key: ({ input }) => [input.orderId],
    idempotent: dedupe,
    ...writeTimings,
    retry: RETRY,
    execute: ({ input, operationId, signal, run }) => {
      const holdMs = crashHoldMs({ tool: 'payments.refund', runId: run.runId });
      return payments.refund({ ...input, operationId, holdMs }, signal);
    },
    reconcile: options.reconcile
      ? ({ operationId, signal }) =>
          asked(async () => {
            const [refund] = await payments.refundsOf(operationId, signal);
            return refund && { refundId: refund.refundId };
          })
      : undefined,
  });

  const readRefund = tool({
    name: 'payments.refund-status',
    version: '1',
    effect: 'read',
    input: z.object({ refundId: z.string() }),
    output: readBackAnswer,
    timeoutMs: readTimeoutMs,
    retry: RETRY,
    execute: async ({ input, signal }) => {
      const refund = await payments.refundById(input.refundId, signal);
      return { refund: refund && readBack.parse(refund) };
    },
  });

  const notifyVendor = tool({
    name: 'mail.notify',
    version: '1',
    effect: 'write',
    input: z.object({ ...money, refundId: z.string(), vendor: z.string(), email: z.string() }),
    output: z.object({ messageId: z.string() }),
    key: ({ input }) => [input.orderId],
    idempotent: dedupe,
    ...writeTimings,
    retry: RETRY,
    execute: async ({ input, operationId, signal, run }) => {
      const messageId = messageIdOf(operationId);
      const amount = formatAmount(input.amountCents, input.currency);
      await mails.send(
        {
          messageId,
          orderId: input.orderId,
          to: input.email,
          subject: `Refund for order ${input.orderId}`,
          text: `Dear ${input.vendor},\n\nwe have refunded ${amount} for order ${input.orderId} (${input.refundId}).\n`,
          holdMs: crashHoldMs({ tool: 'mail.notify', runId: run.runId }),
        },
        signal,
      );
      return { messageId };
    },
    reconcile: options.reconcile
      ? ({ operationId, signal }) =>
          asked(async () => {
            const messageId = messageIdOf(operationId);
            const [stored] = await mails.withMessageId(messageId, signal);
            return stored && { messageId };
          })
      : undefined,
  });

  return { readOrder, issueRefund, readRefund, notifyVendor };
}

/** The answer of a query: found, not there, or no answer. */
async function asked<T>(query: () => Promise<T | undefined>) {
  try {
    const output = await query();
    return output === undefined ? didNotHappen() : happened(output);
  } catch (error) {
    return unknown(error instanceof Error ? error.message : String(error));
  }
}
