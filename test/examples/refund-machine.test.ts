import { getInitialSnapshot, getNextSnapshot, type SnapshotFrom } from 'xstate';
import { describe, expect, test } from 'vitest';
import { createRefundAgent, refundAgent } from '../../examples/refund/agent.ts';
import { refundMachine } from '../../examples/refund/machine.ts';
import type { Order } from '../../examples/refund/orders.ts';
import type { RefundRequest } from '../../examples/refund/rows.ts';
import { LOCAL_PROVIDERS } from '../../examples/refund/tools.ts';
import { findNonJson } from '../../src/json.ts';
import { orderOf } from './servers.ts';

const REQUEST: RefundRequest = {
  orderId: 'PO-1',
  vendor: 'Nordwind',
  email: 'billing@nordwind.example',
  amountCents: 5_000,
  currency: 'EUR',
  reason: 'damaged in transit',
};
const REFUND = { orderId: 'PO-1', amountCents: 5_000, currency: 'EUR' };
const ORDER = orderOf('PO-1');

const done = (invoke: string, output: unknown) => ({ type: `xstate.done.actor.${invoke}`, output, actorId: invoke });
const failed = (invoke: string, code: string) => ({
  type: `xstate.error.actor.${invoke}`,
  error: { code, message: 'said so', details: null },
  actorId: invoke,
});

const verified = done('readOrder', { order: ORDER });
const refunded = done('issueRefund', { refundId: 're_1' });
const readBack = done('readRefund', { refund: REFUND });
const notified = done('notifyVendor', { messageId: '<m>' });

/** The snapshot after these events, by the pure functions of XState. */
function walk(events: object[], request: RefundRequest = REQUEST): SnapshotFrom<typeof refundMachine> {
  let snapshot = getInitialSnapshot(refundMachine, request);
  // The completions of invokes are no events that a sender may send, so their types are not known here.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  for (const event of events) snapshot = getNextSnapshot(refundMachine, snapshot, event as never);
  return snapshot;
}

test('an order that is as asked is refunded, compared, and its vendor told', () => {
  const states = [[], [verified], [verified, refunded], [verified, refunded, readBack]].map(
    (events) => walk(events).value,
  );
  expect(states).toEqual(['verifying', 'refunding', 'checking', 'notifying']);
  expect(walk([verified, refunded, readBack, notified])).toMatchObject({
    value: 'done',
    output: { outcome: 'done', orderId: 'PO-1', refundId: 're_1', notified: true, reason: '' },
  });
});

describe('nothing is refunded', () => {
  test.each([
    ['there is no such order', null, 'declined', 'no such order'],
    ['the order is closed', { ...ORDER, refundable: false }, 'declined', 'may not be refunded'],
    ['it was paid in another currency', { ...ORDER, currency: 'USD' }, 'declined', 'another currency'],
    ['it was paid with another amount', { ...ORDER, amountCents: 4_999 }, 'declined', 'another amount'],
  ])('when %s', (_, order: Order | null, outcome, reason) => {
    expect(walk([done('readOrder', { order })]).output).toMatchObject({
      outcome,
      refundId: null,
      reason: expect.stringContaining(reason),
    });
  });

  test.each([
    ['EUR', 100_000, 'refunding'],
    ['EUR', 100_001, 'review'],
    ['JPY', 160_001, 'review'],
  ])('above the limit of %s: %i goes to %s', (currency, amountCents, state) => {
    const order = { ...ORDER, amountCents, currency };
    expect(walk([done('readOrder', { order })], { ...REQUEST, amountCents, currency }).value).toBe(state);
  });

  test('when the order cannot be read', () => {
    expect(walk([failed('readOrder', 'TOOL_TIMEOUT')]).output).toMatchObject({
      outcome: 'review',
      reason: 'the order could not be read: TOOL_TIMEOUT said so',
    });
  });

  test('when the provider refuses for good', () => {
    expect(walk([verified, failed('issueRefund', 'TOOL_FAILED')]).output).toMatchObject({
      outcome: 'declined',
      refundId: null,
    });
  });

  test('when it never got through, and then somebody looks', () => {
    expect(walk([verified, failed('issueRefund', 'TOOL_NOT_EXECUTED')]).output).toMatchObject({ outcome: 'review' });
  });
});

describe('after the refund', () => {
  test.each([
    ['another order', { ...REFUND, orderId: 'PO-2' }],
    ['another amount', { ...REFUND, amountCents: 50_000 }],
    ['another currency', { ...REFUND, currency: 'USD' }],
    ['nothing', null],
  ])('%s read back goes to review, and nobody is told', (_, refund) => {
    expect(walk([verified, refunded, done('readRefund', { refund })]).output).toMatchObject({
      outcome: 'review',
      refundId: 're_1',
      notified: false,
    });
  });

  test('a refund that cannot be read back goes to review', () => {
    expect(walk([verified, refunded, failed('readRefund', 'TOOL_FAILED')]).output).toMatchObject({ outcome: 'review' });
  });

  test('a mail that is refused leaves it done, and says that the vendor was not told', () => {
    expect(walk([verified, refunded, readBack, failed('notifyVendor', 'TOOL_FAILED')]).output).toMatchObject({
      outcome: 'done',
      notified: false,
      reason: 'the vendor was not told: TOOL_FAILED said so',
    });
  });
});

describe('events from outside', () => {
  const cancel = { type: 'CANCEL', by: 'ann' } as const;
  const hold = { type: 'HOLD', by: 'bob', why: 'looks odd' } as const;
  const resume = { type: 'RESUME', by: 'bob' } as const;
  const deadline = { type: 'DEADLINE_EXCEEDED' } as const;
  const before = { verifying: [], held: [hold] };
  const after = { refunding: [verified], checking: [verified, refunded], notifying: [verified, refunded, readBack] };

  test('a cancel before the refund declines it and says who', () => {
    expect(walk([cancel]).output).toMatchObject({ outcome: 'declined', reason: 'cancelled by ann' });
    expect(walk([hold, cancel]).output).toMatchObject({ outcome: 'declined', reason: 'cancelled by ann' });
    expect(walk([deadline]).output).toMatchObject({ outcome: 'declined', reason: 'too late' });
  });

  test('a held refund says why, and is verified anew when it is resumed', () => {
    expect(walk([hold]).context.reason).toBe('held by bob: looks odd');
    expect(walk([hold, resume])).toMatchObject({ value: 'verifying', context: { reason: '' } });
    expect(walk([hold, verified]).value).toBe('held');
    expect(walk([hold, { type: 'xstate.after.heldTooLong.refund.held' }]).output).toMatchObject({ outcome: 'review' });
  });

  test('each state takes exactly the events that are sensible there', () => {
    const taken = Object.fromEntries(
      Object.entries({ ...before, ...after }).map(([state, events]) => {
        const snapshot = walk(events);
        expect(snapshot.value).toBe(state);
        return [state, [cancel, hold, resume, deadline].filter((event) => snapshot.can(event)).map(({ type }) => type)];
      }),
    );
    expect(taken).toEqual({
      verifying: ['CANCEL', 'HOLD', 'DEADLINE_EXCEEDED'],
      held: ['CANCEL', 'RESUME', 'DEADLINE_EXCEEDED'],
      refunding: [],
      checking: [],
      notifying: [],
    });
  });
});

test('context and output are JSON in every state', () => {
  const path = [verified, refunded, readBack, notified];
  for (let length = 0; length <= path.length; length++) {
    const { context, output } = walk(path.slice(0, length));
    expect(findNonJson({ context, output: output ?? null })).toBeNull();
  }
});

test('the agent can be resumed, whatever its tools can do', () => {
  expect(refundAgent).toMatchObject({ name: 'refund', version: 1 });
  const blind = createRefundAgent({ ...LOCAL_PROVIDERS, dedupe: false, reconcile: false });
  expect(blind.structure).toBe(refundAgent.structure);
  expect(blind.accept).toHaveProperty('write-not-recoverable');
  expect(refundAgent.goal({ input: { ...REQUEST } })).toBe('Refund 50.00 EUR for order PO-1 of Nordwind');
});
