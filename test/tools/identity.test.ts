import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/records.ts';
import { operationIdentity, type OperationIdentity } from '../../src/tools/identity.ts';
import { refund, type RefundSpec } from './fixtures.ts';

interface Where {
  tenant?: string;
  runId?: string;
  input?: Json;
  invocationId?: string;
}

function identify(spec: RefundSpec, where: Where = {}): OperationIdentity {
  const answer = operationIdentity({
    tenant: where.tenant ?? 't1',
    runId: where.runId ?? 'r1',
    tool: refund(spec),
    input: where.input ?? { orderId: 'o1', amountCents: 5 },
    invocationId: where.invocationId ?? '1.0',
  });
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.identity;
}
const idOf = (spec: RefundSpec, where?: Where, generation = 1): string => identify(spec, where).operationId(generation);

describe('the operation id', () => {
  test('is readable, short and of the id alphabet, and stays as it is', () => {
    expect(idOf({})).toMatch(/^op_[0-9a-f]{32}$/);
    // A changed derivation would give every stored run new ids: `verify` diverges and providers see new keys.
    expect(idOf({})).toBe('op_399a42604471add25f597ae6a477bb11');
  });

  test('is the same for the same key, whatever the rest of the input and the invocation', () => {
    expect(idOf({}, { input: { orderId: 'o1', amountCents: 9 }, invocationId: '7.1' })).toBe(idOf({}));
    expect(identify({}, { input: { orderId: 'o1', amountCents: 9 } }).inputDigest).not.toBe(identify({}).inputDigest);
  });

  test('differs by key, tool, generation, tenant and run', () => {
    const ids = [
      idOf({}),
      idOf({}, { input: { orderId: 'o2' } }),
      idOf({ name: 'payments.other' }),
      idOf({}, {}, 2),
      idOf({}, { tenant: 't2' }),
      idOf({}, { runId: 'r2' }),
      idOf({ scope: 'tenant' }),
      idOf({ scope: 'tenant' }, { tenant: 't2' }),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('in tenant scope is the same across runs', () => {
    expect(idOf({ scope: 'tenant' }, { runId: 'r2', invocationId: '9.9' })).toBe(idOf({ scope: 'tenant' }));
  });

  test('without a key is that of the invocation, within its run', () => {
    const same = idOf({ key: null });
    expect(idOf({ key: null }, { input: { orderId: 'other' } })).toBe(same);
    expect(idOf({ key: null }, { invocationId: '1.1' })).not.toBe(same);
    expect(idOf({ key: null }, { runId: 'r2' })).not.toBe(same);
  });

  test('parts cannot be shifted into each other', () => {
    expect(idOf({}, { tenant: 'a', runId: 'b:c' })).not.toBe(idOf({}, { tenant: 'a:b', runId: 'c' }));
    expect(idOf({ key: () => ['1.0'] as never[] })).not.toBe(idOf({ key: null }, { invocationId: '1.0' }));
  });

  test('does not depend on the order of properties', () => {
    const other = identify({}, { input: { amountCents: 5, orderId: 'o1' } });
    expect(other.inputDigest).toBe(identify({}).inputDigest);
  });

  test.each([0, -1, 1.5, Number.NaN])('refuses generation %d', (generation) => {
    expect(() => identify({}).operationId(generation)).toThrow(/generation/);
  });
});

test.each([
  [
    'throws',
    () => {
      throw new Error('no order');
    },
  ],
  ['returns no list', () => 'o1' as never],
  ['holds undefined', () => [undefined] as never[]],
  ['holds a date', () => [new Date(0)] as never[]],
  ['holds NaN', () => [Number.NaN] as never[]],
])('a key that %s is TOOL_INPUT_INVALID', (_name, key) => {
  const answer = operationIdentity({ tenant: 't', runId: 'r', tool: refund({ key }), input: {}, invocationId: '1.0' });
  expect(answer).toMatchObject({ ok: false, error: { code: 'TOOL_INPUT_INVALID' } });
});

test('a key function cannot change the input', () => {
  const input = { orderId: 'o1' };
  const tool = refund({
    key(arg) {
      arg.input.orderId = 'changed';
      return [];
    },
  });
  operationIdentity({ tenant: 't', runId: 'r', tool, input, invocationId: '1.0' });
  expect(input).toEqual({ orderId: 'o1' });
});
