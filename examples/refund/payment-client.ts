/** The payment provider as its callers see it. */
import { z } from 'zod';
import { order, type Order } from './orders.ts';
import { refund, type Refund } from './payment-ledger.ts';
import { acceptedBody, callProvider } from './provider-call.ts';

export interface RefundCall {
  operationId: string;
  orderId: string;
  amountCents: number;
  currency: string;
  /** Asks the server to wait before it does anything: the caller is about to be killed. */
  holdMs: number;
}

export interface PaymentClient {
  order(orderId: string, signal: AbortSignal): Promise<Order | null>;
  refund(call: RefundCall, signal: AbortSignal): Promise<{ refundId: string }>;
  refundById(refundId: string, signal: AbortSignal): Promise<Refund | null>;
  /** What the provider did under an operation id; empty means that it did nothing so far. */
  refundsOf(operationId: string, signal: AbortSignal): Promise<Refund[]>;
}

const accepted = z.object({ refundId: z.string() });
const found = z.object({ refunds: refund.array() });

export function createPaymentClient(paymentUrl: string): PaymentClient {
  const read = async (path: string, signal: AbortSignal): Promise<unknown> => {
    const reply = await callProvider(`${paymentUrl}${path}`, { signal });
    return reply.status === 404 ? null : acceptedBody(reply);
  };
  return {
    async order(orderId, signal) {
      return order.nullable().parse(await read(`/orders/${encodeURIComponent(orderId)}`, signal));
    },
    async refund({ operationId, holdMs, ...body }, signal) {
      const headers: Record<string, string> = { 'content-type': 'application/json', 'idempotency-key': operationId };
      if (holdMs > 0) headers['x-crash-hold'] = String(holdMs);
      const call = { method: 'POST', headers, body: JSON.stringify(body), signal } as const;
      return accepted.parse(acceptedBody(await callProvider(`${paymentUrl}/refunds`, call)));
    },
    async refundById(refundId, signal) {
      return refund.nullable().parse(await read(`/refunds/${encodeURIComponent(refundId)}`, signal));
    },
    async refundsOf(operationId, signal) {
      return found.parse(await read(`/refunds?operationId=${encodeURIComponent(operationId)}`, signal)).refunds;
    },
  };
}
