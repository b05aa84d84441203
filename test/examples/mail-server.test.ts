import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { conductOf } from '../../examples/refund/conduct.ts';
import { createMailClient, messageIdOf, type Notice } from '../../examples/refund/mail-client.ts';
import { isNotExecuted, isToolFailure } from '../../src/tools/outcome.ts';
import { mailServer, SHORT } from './servers.ts';

type MailServer = Awaited<ReturnType<typeof mailServer>>;

/** For an answer that comes, and for one that does not; smtp-server greets after 100 ms. */
const PATIENT_MS = 5_000;
const IMPATIENT_MS = 600;
/** In `refuse` with seed 1: a mailbox that is refused, and one that is not. */
const [REFUSED = '', TAKEN = ''] = (['refuse', 'behave'] as const).map((conduct) =>
  Array.from({ length: 40 }, (_, at) => `box${at}@nordwind.example`).find(
    (address) => conductOf({ misbehave: 'refuse', seed: 1 }, address, 1) === conduct,
  ),
);

/** `sent`, or what sending threw. */
async function send(server: MailServer, orderId: string, change: Partial<Notice> & { giveUpMs?: number } = {}) {
  const { giveUpMs = PATIENT_MS, ...notice } = change;
  const client = createMailClient(server.smtpUrl, server.mailQueryUrl);
  const messageId = messageIdOf(`op-${orderId}`);
  const whole = { messageId, orderId, to: TAKEN, subject: 'Refund', text: 'Überwiesen', holdMs: 0, ...notice };
  return client.send(whole, AbortSignal.timeout(giveUpMs)).then(
    () => 'sent' as const,
    (error: unknown) => error,
  );
}

const stored = (server: MailServer, orderId: string) =>
  createMailClient(server.smtpUrl, server.mailQueryUrl).withMessageId(
    messageIdOf(`op-${orderId}`),
    AbortSignal.timeout(1_000),
  );

test('a mail is stored once under its message id and can be asked for', async () => {
  const server = await mailServer();
  expect(await stored(server, 'PO-1')).toEqual([]);
  expect(await send(server, 'PO-1')).toBe('sent');
  expect(await send(server, 'PO-1')).toBe('sent');
  expect(await stored(server, 'PO-1')).toMatchObject([
    { messageId: messageIdOf('op-PO-1'), orderId: 'PO-1', recipient: TAKEN },
  ]);
  expect(await server.judge()).toMatchObject({ effects: 1, duplicates: [] });
});

test('a repeated mail is answered, however the first one ended', async () => {
  const server = await mailServer({ misbehave: 'accept-reset' });
  expect(await send(server, 'PO-1')).toSatisfy(isUnknown);
  expect(await send(server, 'PO-1')).toBe('sent');
  expect(await server.judge()).toMatchObject({ effects: 1, duplicates: [] });
});

test('a connection opened ahead saves the wait for the greeting', async () => {
  const server = await mailServer();
  const client = createMailClient(server.smtpUrl, server.mailQueryUrl, 2);
  await sleep(200);
  for (const orderId of ['PO-1', 'PO-2', 'PO-3', 'PO-4']) {
    const notice = { messageId: messageIdOf(orderId), orderId, to: TAKEN, subject: 's', text: 't', holdMs: 0 };
    await client.send(notice, AbortSignal.timeout(PATIENT_MS));
  }
  expect(await server.judge()).toMatchObject({ effects: 4, duplicates: [] });
});

test('without dedupe each accepted mail is a row, and two for an order are a duplicate', async () => {
  const server = await mailServer({ dedupe: false });
  await send(server, 'PO-1');
  await send(server, 'PO-1');
  expect(await server.judge()).toMatchObject({ effects: 2, duplicates: [{ orderId: 'PO-1', effects: 2 }] });
});

test('a second message id for an order is a duplicate with dedupe too', async () => {
  const server = await mailServer();
  await send(server, 'PO-1');
  await send(server, 'PO-1', { messageId: '<other@refunds.example>' });
  expect((await server.judge()).duplicates).toEqual([{ orderId: 'PO-1', effects: 2 }]);
});

describe.concurrent.each([true, false])('misbehaviours with dedupe %s', (dedupe) => {
  test('refuse: the mailbox does not exist, for good', async () => {
    const server = await mailServer({ misbehave: 'refuse', dedupe });
    expect(await send(server, 'PO-1', { to: REFUSED })).toSatisfy(isToolFailure);
    expect(await send(server, 'PO-1', { to: TAKEN })).toBe('sent');
    expect((await server.judge()).effects).toBe(1);
  });

  test('accept-timeout: stores it and never answers', async () => {
    const server = await mailServer({ misbehave: 'accept-timeout', dedupe });
    expect(await send(server, 'PO-1', { giveUpMs: IMPATIENT_MS })).toSatisfy(isUnknown);
    expect(await stored(server, 'PO-1')).toHaveLength(1);
  });

  test('accept-reset: stores it and closes the socket at once', async () => {
    const server = await mailServer({ misbehave: 'accept-reset', dedupe });
    const startedMs = performance.now();
    expect(await send(server, 'PO-1')).toSatisfy(isUnknown);
    expect(performance.now() - startedMs).toBeLessThan(PATIENT_MS);
    expect(await stored(server, 'PO-1')).toHaveLength(1);
  });

  test('slow: answers within the time-out', async () => {
    const server = await mailServer({ misbehave: 'slow', dedupe });
    expect(await send(server, 'PO-1')).toBe('sent');
  });

  test('late: stored after the caller has given up', async () => {
    const server = await mailServer({ misbehave: 'late', dedupe });
    const sending = send(server, 'PO-1', { giveUpMs: SHORT.callerTimeoutMs - 100 });
    await sleep(200);
    expect(await stored(server, 'PO-1')).toEqual([]);
    expect(await sending).toSatisfy(isUnknown);
    expect(await server.judge()).toMatchObject({ effects: 1 });
  });

  test('error-500: 451 says that the mail was not taken, then it works', async () => {
    const server = await mailServer({ misbehave: 'error-500', dedupe });
    expect(await send(server, 'PO-1')).toSatisfy(isNotExecuted);
    expect(await stored(server, 'PO-1')).toEqual([]);
    await send(server, 'PO-1');
    expect(await send(server, 'PO-1')).toBe('sent');
  });

  test('query-down: the query answers 503 for a while from its first time on', async () => {
    const server = await mailServer({ misbehave: 'query-down', dedupe });
    expect(await send(server, 'PO-1', { giveUpMs: IMPATIENT_MS })).toSatisfy(isUnknown);
    await expect(stored(server, 'PO-1')).rejects.toThrow('503');
    await vi.waitFor(async () => expect(await stored(server, 'PO-1')).toHaveLength(1), { timeout: 5_000 });
  });
});

test('a caller that dies during the hold has its mail stored late for some orders and never for the others', async () => {
  const server = await mailServer({ dedupe: false });
  const orders = Array.from({ length: 20 }, (_, at) => `PO-${at + 1}`);
  await Promise.all(orders.map((orderId) => send(server, orderId, { holdMs: 4_000, giveUpMs: 1_500 })));
  const { effects } = await server.judge();
  expect(effects).toBeGreaterThan(3);
  expect(effects).toBeLessThan(17);
});

function isUnknown(outcome: unknown): boolean {
  return outcome instanceof Error && !isToolFailure(outcome) && !isNotExecuted(outcome);
}
