import { expect, test } from 'vitest';
import { askPolicy, type Policy, type PolicyQuestion } from '../../src/tools/policy.ts';
import { run } from './fixtures.ts';

const question: PolicyQuestion = {
  run,
  tool: { name: 'payments.refund', version: '1', effect: 'write' },
  input: { orderId: 'o1' },
  operationId: 'op_1',
  intendedAtMs: 5,
  by: 'ann',
};
const ask = (check: () => unknown): ReturnType<typeof askPolicy> =>
  askPolicy({ version: '1', check: check as Policy['check'] }, question);

test('allowed and denied, answered at once or later', async () => {
  expect(await ask(() => ({ allow: true }))).toEqual({ kind: 'allowed' });
  expect(await ask(async () => ({ allow: false, reason: 'night' }))).toEqual({ kind: 'denied', reason: 'night' });
  expect(await ask(() => ({ allow: false, reason: 'night', retryAtMs: 9 }))).toEqual({
    kind: 'denied',
    reason: 'night',
    retryAtMs: 9,
  });
});

test('a throw is neither', async () => {
  expect(await ask(() => Promise.reject(new Error('database down')))).toEqual({
    kind: 'threw',
    message: 'database down',
  });
});

test.each([undefined, null, true, 'yes', {}, { allow: 1 }, { allow: 'true' }, { allow: false, retryAtMs: Number.NaN }])(
  'an answer that is not understood, %j, allows nothing',
  async (answer) => {
    expect(await ask(() => answer)).toMatchObject({ kind: 'threw' });
  },
);

test('the policy cannot change the input', async () => {
  const policy: Policy = {
    version: '1',
    check(asked) {
      (asked.input as { orderId: string }).orderId = 'changed';
      return { allow: true };
    },
  };
  await askPolicy(policy, question);
  expect(question.input).toEqual({ orderId: 'o1' });
});
