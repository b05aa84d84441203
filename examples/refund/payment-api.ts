/** The payment provider over HTTP, misbehaving as told. It refuses nothing for being a second refund of an order. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { chance, conductOf, readConductOf, type ConductRule } from './conduct.ts';
import type { PaymentLedger } from './payment-ledger.ts';
import { perform } from './perform.ts';
import { createQueryOutage } from './query-outage.ts';
import type { ServerTimings } from './timings.ts';

export interface PaymentApiOptions extends ConductRule {
  ledger: PaymentLedger;
  /** A repeated idempotency key answers its first outcome, refusals too; a concurrent one waits for the first. */
  dedupe: boolean;
  timings: ServerTimings;
}

const refundOrder = z.object({ orderId: z.string(), amountCents: z.int().positive(), currency: z.string() });

interface Asked extends z.infer<typeof refundOrder> {
  operationId: string;
}

interface Answer {
  status: number;
  body: string;
}

const json = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body) });

export function createPaymentApi(options: PaymentApiOptions): RequestListener {
  const { ledger, dedupe, seed, timings } = options;
  /** Requests seen per subject, in memory: the attempt number that a conduct is drawn for. */
  const seen = new Map<string, number>();
  const running = new Map<string, Promise<void>>();
  const outage = createQueryOutage(timings.queryDownMs);
  let pending = 0;

  const count = (subject: string): number => {
    const attempt = (seen.get(subject) ?? 0) + 1;
    seen.set(subject, attempt);
    return attempt;
  };

  async function postRefund(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = await readAsked(request);
    if (!asked) return send(response, json(400, { error: 'malformed' }));
    if (dedupe) {
      while (running.has(asked.operationId)) await running.get(asked.operationId);
      const outcome = ledger.outcome(asked.operationId);
      if (outcome) return send(response, outcome);
    }
    const work = refund(asked, request, response);
    if (dedupe) running.set(asked.operationId, work);
    await work.finally(() => running.delete(asked.operationId));
  }

  async function refund(asked: Asked, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const conduct = conductOf(options, asked.orderId, count(`refund ${asked.orderId}`));
    if (conduct === 'query-down') outage.arm(asked.operationId);
    const refuse = (answer: Answer): void => {
      if (dedupe) ledger.keepOutcome(asked.operationId, answer);
      send(response, answer);
    };
    let answer = json(201, {});
    const effect = (changed: Partial<Asked> = {}): void => {
      const { refundId } = ledger.addRefund({ ...asked, ...changed }, dedupe);
      answer = json(201, { refundId });
    };
    const objection = objectionTo(asked, ledger);
    await perform(
      {
        orderId: asked.orderId,
        conduct: objection ? 'refuse' : conduct,
        holdMs: Number(request.headers['x-crash-hold'] ?? 0),
        closed: closeOf(response),
        effect,
        wrongEffect: () => effect(wrongMoney(asked, seed)),
        refuse: () => refuse(objection ?? json(422, { error: 'refused_by_provider' })),
        answer: () => send(response, answer),
        fail: () => send(response, json(500, { error: 'internal' })),
        reset: () => void request.socket.resetAndDestroy(),
      },
      seed,
      timings,
    );
  }

  async function read(subject: string, response: ServerResponse, found: unknown): Promise<void> {
    const conduct = readConductOf(options, subject, count(`read ${subject}`));
    if (conduct === 'silent') return;
    if (conduct === 'error-500') return send(response, json(500, { error: 'internal' }));
    if (conduct === 'slow') await sleep(timings.slowMs);
    send(response, found ? json(200, found) : json(404, { error: 'not_found' }));
  }

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const [, collection, id] = url.pathname.split('/').map(decodeURIComponent);
    const operationId = url.searchParams.get('operationId');
    switch (`${request.method} ${collection}${id === undefined ? '' : '/:id'}`) {
      case 'POST refunds':
        return postRefund(request, response);
      case 'GET orders/:id':
        return read(`order ${id}`, response, ledger.order(id ?? ''));
      case 'GET refunds/:id':
        return read(`refund ${id}`, response, ledger.refund(id ?? ''));
      case 'GET refunds':
        if (operationId === null) return send(response, json(400, { error: 'malformed' }));
        if (outage.isDown(operationId)) return send(response, json(503, { error: 'unavailable' }));
        return send(response, json(200, { refunds: ledger.refundsOf(operationId) }));
      case 'GET judge':
        return send(response, json(200, { ...ledger.judge(), pending: pending - 1 }));
      default:
        return send(response, json(404, { error: 'not_found' }));
    }
  }

  return (request, response) => {
    pending += 1;
    route(request, response)
      .catch((error: unknown) => {
        process.stderr.write(`payment server: ${String(error)}\n`);
        send(response, json(500, { error: 'internal' }));
      })
      .finally(() => (pending -= 1));
  };
}

/** What a sane provider refuses by itself. */
function objectionTo(asked: Asked, ledger: PaymentLedger): Answer | null {
  const order = ledger.order(asked.orderId);
  if (!order) return json(404, { error: 'unknown_order' });
  if (!order.refundable) return json(422, { error: 'not_refundable' });
  if (order.currency !== asked.currency) return json(422, { error: 'other_currency' });
  if (order.amountCents < asked.amountCents) return json(422, { error: 'more_than_paid' });
  return null;
}

function wrongMoney(asked: Asked, seed: number): Partial<Asked> {
  if (chance(seed, 'currency', asked.orderId) < 0.5) return { currency: asked.currency === 'EUR' ? 'USD' : 'EUR' };
  return { amountCents: asked.amountCents * 10 };
}

async function readAsked(request: IncomingMessage): Promise<Asked | null> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
  const operationId = request.headers['idempotency-key'];
  try {
    const parsed = refundOrder.safeParse(JSON.parse(text));
    return parsed.success && typeof operationId === 'string' ? { ...parsed.data, operationId } : null;
  } catch {
    return null;
  }
}

/** Resolves when the caller is gone, or the answer is complete. */
function closeOf(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) resolve();
    else response.once('close', resolve);
  });
}

function send(response: ServerResponse, { status, body }: Answer): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
