/** The two servers of the example inside the test's process, with short timings; each test stops exactly its own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Misbehaviour } from '../../examples/refund/conduct.ts';
import { mailJudgement, openMailBox } from '../../examples/refund/mail-box.ts';
import { createMailService } from '../../examples/refund/mail-smtp.ts';
import type { Order } from '../../examples/refund/orders.ts';
import { createPaymentApi } from '../../examples/refund/payment-api.ts';
import { openPaymentLedger, paymentJudgement } from '../../examples/refund/payment-ledger.ts';
import { judgeOf } from '../../examples/refund/start-server.ts';
import type { ServerTimings, ToolTimings } from '../../examples/refund/timings.ts';

/** Short, and yet long enough for a busy machine. */
export const SHORT: ServerTimings = { callerTimeoutMs: 800, lateMs: 600, slowMs: 150, queryDownMs: 800 };
export const SHORT_TOOLS: ToolTimings = {
  readTimeoutMs: 800,
  timeoutMs: 800,
  settleAfterMs: 1_600,
  reconcileForMs: 5_000,
};

export interface Settings {
  misbehave?: Misbehaviour;
  seed?: number;
  dedupe?: boolean;
}

const BEHAVING = { misbehave: 'none', seed: 1, dedupe: true, timings: SHORT } as const;

const folder = mkdtempSync(join(tmpdir(), 'pawl-refund-'));
const stops: (() => void)[] = [];
let files = 0;

afterAll(() => {
  for (const stop of stops) stop();
  rmSync(folder, { recursive: true, force: true });
});

export async function paymentServer(settings: Settings & { orders?: Order[] } = {}) {
  const ledger = openPaymentLedger(newFile(), settings.orders ?? ORDERS);
  const server = createServer(createPaymentApi({ ledger, ...BEHAVING, ...settings }));
  const paymentUrl = `http://127.0.0.1:${await listen(server)}`;
  stops.push(() => ledger.close());
  return { paymentUrl, judge: () => judgeOf(paymentUrl, paymentJudgement) };
}

export async function mailServer(settings: Settings = {}) {
  const box = openMailBox(newFile(), settings.dedupe ?? true);
  const { smtp, query } = createMailService({ box, ...BEHAVING, ...settings });
  const smtpUrl = `smtp://127.0.0.1:${await listen(smtp.server)}`;
  const mailQueryUrl = `http://127.0.0.1:${await listen(createServer(query))}`;
  stops.push(() => box.close());
  return { smtpUrl, mailQueryUrl, judge: () => judgeOf(mailQueryUrl, mailJudgement) };
}

async function listen(server: Server | NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.unshift(() => {
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
  return portOf(server);
}

export function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

/** PO-1 … PO-40 of 50.00 EUR each, and PO-closed that may not be refunded. */
export const ORDERS: Order[] = Array.from({ length: 40 }, (_, at) => orderOf(`PO-${at + 1}`)).concat({
  ...orderOf('PO-closed'),
  refundable: false,
});

export function orderOf(orderId: string): Order {
  return {
    orderId,
    vendor: 'Nordwind',
    email: 'billing@nordwind.example',
    amountCents: 5_000,
    currency: 'EUR',
    refundable: true,
  };
}

/** A port that was free a moment ago. */
export async function portOfNobody(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function portOf(server: Server | NetServer): number {
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the server does not listen on a port');
  return address.port;
}
