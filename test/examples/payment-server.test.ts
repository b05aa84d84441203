import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { conductOf, type Misbehaviour } from '../../examples/refund/conduct.ts';
import { paymentServer, SHORT } from './servers.ts';

type PaymentServer = Awaited<ReturnType<typeof paymentServer>>;

/** For an answer that comes, and for one that does not. */
const PATIENT_MS = 5_000;
const IMPATIENT_MS = 300;

interface Answer {
  status: number;
  body: unknown;
  elapsedMs: number;
}

/** Null when there was no answer: time-out or reset. */
async function post(
  { paymentUrl }: PaymentServer,
  orderId: string,
  options: { operationId?: string; holdMs?: number; giveUpMs?: number; amountCents?: number } = {},
): Promise<Answer | null> {
  const { operationId = `op-${orderId}`, holdMs, giveUpMs = PATIENT_MS, amountCents = 5_000 } = options;
  const startedMs = performance.now();
  try {
    const response = await fetch(`${paymentUrl}/refunds`, {
      method: 'POST',
      headers: { 'idempotency-key': operationId, ...(holdMs ? { 'x-crash-hold': String(holdMs) } : {}) },
      body: JSON.stringify({ orderId, amountCents, currency: 'EUR' }),
      signal: AbortSignal.timeout(giveUpMs),
    });
    return { status: response.status, body: await response.json(), elapsedMs: performance.now() - startedMs };
  } catch {
    return null;
  }
}

async function get({ paymentUrl }: PaymentServer, path: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${paymentUrl}${path}`);
  return { status: response.status, body: await response.json() };
}

/** The first of PO-1 … whose first attempt draws this conduct. */
function orderWith(misbehave: Misbehaviour, conduct: string, seed = 1): string {
  for (let number = 1; number <= 40; number++) {
    if (conductOf({ misbehave, seed }, `PO-${number}`, 1) === conduct) return `PO-${number}`;
  }
  throw new Error(`no order draws ${conduct} in ${misbehave}`);
}

const refundsOf = async (server: PaymentServer, orderId: string): Promise<unknown[]> =>
  (await server.judge()).refunds.filter((refund) => refund.orderId === orderId);

describe('a payment server that behaves', () => {
  let server: PaymentServer;
  beforeAll(async () => {
    server = await paymentServer();
  });

  test('refunds once, and the refund can be read and asked for by operation id', async () => {
    const answer = await post(server, 'PO-1');
    expect(answer).toMatchObject({ status: 201, body: { refundId: 're_1' } });
    const refund = { refundId: 're_1', orderId: 'PO-1', operationId: 'op-PO-1', amountCents: 5_000, currency: 'EUR' };
    expect(await get(server, '/refunds/re_1')).toMatchObject({ status: 200, body: refund });
    expect(await get(server, '/refunds?operationId=op-PO-1')).toMatchObject({ body: { refunds: [refund] } });
    expect(await get(server, '/refunds?operationId=op-none')).toEqual({ status: 200, body: { refunds: [] } });
  });

  test('shows its orders, and says which it does not know', async () => {
    expect(await get(server, '/orders/PO-2')).toMatchObject({
      status: 200,
      body: { orderId: 'PO-2', refundable: true },
    });
    expect(await get(server, '/orders/PO-999')).toMatchObject({ status: 404 });
    expect(await get(server, '/refunds/re_999')).toMatchObject({ status: 404 });
  });

  test('refuses what is not a refund of an order it may pay back', async () => {
    expect(await post(server, 'PO-999')).toMatchObject({ status: 404, body: { error: 'unknown_order' } });
    expect(await post(server, 'PO-closed')).toMatchObject({ status: 422, body: { error: 'not_refundable' } });
    expect(await post(server, 'PO-3', { amountCents: 5_001 })).toMatchObject({ body: { error: 'more_than_paid' } });
    expect(await post(server, 'PO-3', { operationId: 'op-a', amountCents: -1 })).toMatchObject({ status: 400 });
  });

  test('a repeated key answers its first outcome, a refusal too', async () => {
    const first = await post(server, 'PO-4');
    expect((await post(server, 'PO-4'))?.body).toEqual(first?.body);
    expect((await post(server, 'PO-5', { operationId: 'op-r', amountCents: 9_999 }))?.status).toBe(422);
    expect((await post(server, 'PO-5', { operationId: 'op-r' }))?.status).toBe(422);
    expect(await refundsOf(server, 'PO-4')).toHaveLength(1);
    expect(await refundsOf(server, 'PO-5')).toHaveLength(0);
  });

  test('a concurrent duplicate waits for the first', async () => {
    const answers = await Promise.all([
      post(server, 'PO-6', { holdMs: 50 }),
      post(server, 'PO-6'),
      post(server, 'PO-6', { holdMs: 50 }),
    ]);
    expect(new Set(answers.map((answer) => JSON.stringify(answer?.body))).size).toBe(1);
    expect(await refundsOf(server, 'PO-6')).toHaveLength(1);
  });

  test('a second key for one order is a duplicate that the server counts', async () => {
    await post(server, 'PO-7', { operationId: 'op-7a' });
    await post(server, 'PO-7', { operationId: 'op-7b' });
    expect((await server.judge()).duplicates).toEqual([{ orderId: 'PO-7', effects: 2 }]);
  });
});

test('without dedupe each accepted request is an effect under its operation id', async () => {
  const server = await paymentServer({ dedupe: false });
  await post(server, 'PO-1');
  await post(server, 'PO-1');
  expect(await get(server, '/refunds?operationId=op-PO-1')).toMatchObject({
    body: { refunds: [{ refundId: 're_1' }, { refundId: 're_2' }] },
  });
  expect(await server.judge()).toMatchObject({ effects: 2, duplicates: [{ orderId: 'PO-1', effects: 2 }] });
});

describe.concurrent.each([true, false])('misbehaviours with dedupe %s', (dedupe) => {
  test('refuse: a refused order stays refused under any key, others pass', async () => {
    const server = await paymentServer({ misbehave: 'refuse', dedupe });
    const refused = orderWith('refuse', 'refuse');
    const passed = orderWith('refuse', 'behave');
    expect((await post(server, refused))?.status).toBe(422);
    expect((await post(server, refused, { operationId: 'op-again' }))?.status).toBe(422);
    expect((await post(server, passed))?.status).toBe(201);
    expect((await server.judge()).effects).toBe(1);
  });

  test('accept-timeout: does it and never answers', async () => {
    const server = await paymentServer({ misbehave: 'accept-timeout', dedupe });
    expect(await post(server, 'PO-1', { giveUpMs: IMPATIENT_MS })).toBeNull();
    expect(await refundsOf(server, 'PO-1')).toHaveLength(1);
  });

  test('accept-reset: does it and closes the socket at once', async () => {
    const server = await paymentServer({ misbehave: 'accept-reset', dedupe });
    const startedMs = performance.now();
    expect(await post(server, 'PO-1')).toBeNull();
    expect(performance.now() - startedMs).toBeLessThan(PATIENT_MS);
    expect(await refundsOf(server, 'PO-1')).toHaveLength(1);
  });

  test('slow: answers late, but within the time-out', async () => {
    const server = await paymentServer({ misbehave: 'slow', dedupe });
    const answer = await post(server, 'PO-1');
    expect(answer?.status).toBe(201);
    expect(answer?.elapsedMs).toBeGreaterThanOrEqual(SHORT.slowMs / 3 - 1);
  });

  test('late: the effect comes after the caller has given up', async () => {
    const server = await paymentServer({ misbehave: 'late', dedupe });
    const answer = post(server, 'PO-1', { giveUpMs: SHORT.callerTimeoutMs - 100 });
    await sleep(50);
    expect(await get(server, '/refunds?operationId=op-PO-1')).toEqual({ status: 200, body: { refunds: [] } });
    expect(await answer).toBeNull();
    const startedMs = performance.now();
    expect(await refundsOf(server, 'PO-1')).toHaveLength(1);
    expect(performance.now() - startedMs).toBeGreaterThan(SHORT.lateMs / 10);
  });

  test('error-500: no effect, then it works', async () => {
    const server = await paymentServer({ misbehave: 'error-500', dedupe });
    const statuses = [];
    for (let attempt = 0; attempt < 3; attempt++) statuses.push((await post(server, 'PO-1'))?.status);
    expect(statuses[0]).toBe(500);
    expect(statuses[2]).toBe(201);
    const worked = statuses.filter((status) => status === 201).length;
    expect(await refundsOf(server, 'PO-1')).toHaveLength(dedupe ? 1 : worked);
  });

  test('query-down: the query answers 503 for a while from its first time on', async () => {
    const server = await paymentServer({ misbehave: 'query-down', dedupe });
    expect(await post(server, 'PO-1', { giveUpMs: IMPATIENT_MS })).toBeNull();
    const firstMs = performance.now();
    const answers = [];
    do {
      answers.push(await get(server, '/refunds?operationId=op-PO-1'));
      await sleep(50);
    } while (answers.at(-1)?.status === 503);
    expect(answers.length).toBeGreaterThan(1);
    expect(performance.now() - firstMs).toBeGreaterThanOrEqual(SHORT.queryDownMs);
    expect(answers.at(-1)).toMatchObject({ status: 200, body: { refunds: [{ orderId: 'PO-1' }] } });
  });

  test('wrong-amount: only reading back shows it', async () => {
    const server = await paymentServer({ misbehave: 'wrong-amount', dedupe });
    const wrong = orderWith('wrong-amount', 'wrong-amount');
    const answer = await post(server, wrong);
    expect(answer).toMatchObject({ status: 201, body: { refundId: 're_1' } });
    const asked = { amountCents: 5_000, currency: 'EUR' };
    expect((await get(server, '/refunds/re_1')).body).not.toMatchObject(asked);
    expect((await post(server, orderWith('wrong-amount', 'behave')))?.status).toBe(201);
    expect(await get(server, '/refunds/re_2')).toMatchObject({ body: asked });
  });
});

test('a caller that dies during the hold gets the effect late for some orders and never for the others', async () => {
  const server = await paymentServer({ dedupe: false });
  const orders = Array.from({ length: 20 }, (_, at) => `PO-${at + 1}`);
  const answers = await Promise.all(orders.map((orderId) => post(server, orderId, { holdMs: 4_000, giveUpMs: 500 })));
  expect(answers.every((answer) => answer === null)).toBe(true);
  const { effects, duplicates } = await server.judge();
  expect(effects).toBeGreaterThan(3);
  expect(effects).toBeLessThan(17);
  expect(duplicates).toEqual([]);
});

test('after a hold without effect the same key can be tried again', async () => {
  const server = await paymentServer();
  const orders = Array.from({ length: 8 }, (_, at) => `PO-${at + 1}`);
  await Promise.all(orders.map((orderId) => post(server, orderId, { holdMs: 4_000, giveUpMs: 500 })));
  const answers = await Promise.all(orders.map((orderId) => post(server, orderId)));
  expect(answers.map((answer) => answer?.status)).toEqual(orders.map(() => 201));
  expect(await server.judge()).toMatchObject({ effects: orders.length, duplicates: [] });
});

test('the conduct is the same for the same seed, and about half of a mix behaves', () => {
  expect(drawn(7)).toEqual(drawn(7));
  expect(drawn(7)).not.toEqual(drawn(8));
  const behaved = drawn(7).filter((conduct) => conduct === 'behave').length;
  expect(behaved).toBeGreaterThan(150);
  expect(behaved).toBeLessThan(250);
  expect(new Set(drawn(7)).size).toBe(9);
});

function drawn(seed: number): string[] {
  return Array.from({ length: 400 }, (_, at) => conductOf({ misbehave: 'mix', seed }, `PO-${at}`, 1));
}
