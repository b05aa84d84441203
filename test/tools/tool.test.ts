import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isPawlError } from '../../src/errors.ts';
import { approval, approvalOf } from '../../src/tools/approval.ts';
import { decide, decideOf, type Proposals } from '../../src/tools/decide.ts';
import { recoveryOf, tool, toolOf, type ToolDefinition } from '../../src/tools/tool.ts';

const base = {
  name: 'payments.refund',
  version: '1',
  effect: 'write',
  input: z.object({ orderId: z.string() }),
  output: z.object({ refundId: z.string() }),
  timeoutMs: 1000,
  execute: async () => ({ refundId: 'rf_1' }),
} as const;
const refundApproval = approval({
  name: 'refundApproval',
  version: '1',
  covers: z.object({ orderId: z.string() }),
  approvers: { roles: ['finance'] },
  expiresInMs: 1000,
  authorize: () => true,
});
const writeTool = tool(base);
const readTool = tool({ ...base, effect: 'read', name: 'orders.read' });

/** Defines a tool from a spec that the types may forbid. */
const define = (change: object): unknown => tool({ ...base, ...change });
const retryOf = (retry: object): unknown => toolOf(define({ retry }))?.retry;
const digestOf = (change: object): unknown => toolOf(define(change))?.schemaDigest;
const toNull = (): null => null;
const toOrder = (): object => ({ orderId: 'o' });

const proposing = (PLAN: Proposals['specs'][string]): Proposals => ({ types: ['PLAN'], specs: { PLAN } });

/** The message of the refusal; `defined` if there is none. */
function problemOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (isPawlError(error, 'TOOL_INVALID')) return error.message;
    throw error;
  }
  return 'defined';
}

test('defaults', () => {
  expect(toolOf(tool({ ...base, effect: 'read', timeoutMs: undefined }))).toMatchObject({
    name: 'payments.refund',
    effect: 'read',
    scope: 'run',
    idempotent: false,
    timeoutMs: 30_000,
    settleAfterMs: 0,
    reconcileForMs: 86_400_000,
    retry: { maxAttempts: 3, minDelayMs: 200, maxDelayMs: 30_000 },
    key: null,
    reconcile: null,
    compensate: null,
    requires: null,
    outbound: false,
    sensitive: [],
    schemaDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test('part of retry keeps the other defaults', () => {
  expect(retryOf({ maxAttempts: 1 })).toEqual({ maxAttempts: 1, minDelayMs: 200, maxDelayMs: 30_000 });
  expect(retryOf({ minDelayMs: 60_000 })).toEqual({ maxAttempts: 3, minDelayMs: 60_000, maxDelayMs: 60_000 });
});

test('toolOf answers null for anything else', () => {
  for (const value of [null, undefined, {}, 'x', refundApproval, toolOf(writeTool)]) expect(toolOf(value)).toBeNull();
});

test('the schema digest follows the shape of input and output only', () => {
  expect(digestOf({ name: 'other', version: '9', input: z.object({ orderId: z.string() }) })).toBe(digestOf({}));
  expect(digestOf({ input: z.object({ orderId: z.string(), cents: z.int() }) })).not.toBe(digestOf({}));
  expect(digestOf({ output: z.object({ refundId: z.string(), fee: z.int() }) })).not.toBe(digestOf({}));
  expect(digestOf({ input: base.output, output: base.input })).not.toBe(digestOf({}));
});

describe('a definition that could not be recovered or stored is refused, with what to write', () => {
  test.each([
    [{ name: '' }, /Tool '': name is ''; write 1 to 200/],
    [{ name: 'a b' }, /name is 'a b'/],
    [{ name: 'x'.repeat(201) }, /name is/],
    [{ version: 3 }, /version is 3/],
    [{ effect: 'delete' }, /effect is 'delete'; write 'read' or 'write'/],
    [{ scope: 'world' }, /scope is 'world'/],
    [{ execute: undefined }, /execute is undefined/],
    [{ key: ['orderId'] }, /key is an array/],
    [{ reconcile: true }, /reconcile is true/],
    [{ timeoutMs: undefined }, /timeoutMs is missing on a write/],
    [{ timeoutMs: 0 }, /timeoutMs is 0; write a whole number from 1 to 2147483647/],
    [{ timeoutMs: 1.5 }, /timeoutMs is 1.5/],
    [{ timeoutMs: Infinity }, /timeoutMs is Infinity/],
    [{ timeoutMs: 2 ** 31 }, /timeoutMs/],
    [{ timeoutMs: '30s' }, /timeoutMs is '30s'/],
    [{ settleAfterMs: -1 }, /settleAfterMs is -1/],
    [{ reconcileForMs: Number.NaN }, /reconcileForMs is NaN/],
    [{ retry: { maxAttempts: 0 } }, /retry.maxAttempts is 0/],
    [{ retry: { minDelayMs: 500, maxDelayMs: 100 } }, /retry.maxDelayMs is 100; write a whole number from 500/],
    [{ scope: 'tenant' }, /scope is 'tenant' without a key/],
    [{ effect: 'read', reconcile: toNull }, /reconcile is given on a read/],
    [{ effect: 'read', compensate: { tool: writeTool, input: toNull } }, /compensate is given on a read/],
    [{ compensate: { tool: readTool, input: toNull } }, /compensate.tool is a read/],
    [{ compensate: { tool: {}, input: toNull } }, /compensate.tool is an object/],
    [{ compensate: { tool: writeTool, input: {} } }, /compensate.input is an object/],
    [{ requires: writeTool }, /requires is an object/],
    [{ requires: { approval: refundApproval } }, /requires.covers is undefined/],
    [{ sensitive: ['cardToken'] }, /sensitive holds 'cardToken'/],
    [{ sensitive: 'input.x' }, /sensitive is 'input.x'/],
    [{ input: { orderId: 'string' } }, /input is an object; write a Zod 4 schema/],
  ])('%o', (change, message) => {
    expect(problemOf(() => define(change))).toMatch(message);
  });
});

describe('schemas', () => {
  test.each([
    ['a date', z.date()],
    ['a coerced date', z.coerce.date()],
    ['a coerced number', z.coerce.number()],
    ['a transform', z.string().transform((text) => text.length)],
    ['a preprocess', z.preprocess((value) => value, z.string())],
    ['a codec', z.codec(z.string(), z.number(), { decode: Number, encode: String })],
    ['a pipe to a date', z.string().pipe(z.coerce.date())],
    ['a pipe from a date', z.date().pipe(z.any())],
    ['a stringbool', z.stringbool()],
    ['a bigint', z.bigint()],
    ['a bigint literal', z.literal(3n)],
    ['undefined', z.undefined()],
    ['a map', z.map(z.string(), z.string())],
    ['a set', z.set(z.string())],
    ['NaN', z.nan()],
    ['a symbol', z.symbol()],
    ['a custom check', z.custom(() => true)],
    ['an instance', z.instanceof(URL)],
    ['a file', z.file()],
    ['a promise', z.promise(z.string())],
    ['a lazy date', z.lazy(() => z.date())],
  ])('%s is refused, on either side, also deep inside', (_name, schema) => {
    const deep = z.object({ list: z.array(z.object({ value: schema.optional() })) });
    for (const refused of [schema, deep]) {
      expect(problemOf(() => define({ input: refused }))).toMatch(/: input is not plain JSON/);
      expect(problemOf(() => define({ output: refused }))).toMatch(/: output is not plain JSON/);
    }
  });

  test.each([
    ['defaults', z.object({ a: z.string().default('x'), b: z.int().optional() })],
    ['unions', z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })])],
    ['records', z.record(z.string(), z.number())],
    ['recursion', z.json()],
    ['refinements, trims and brands', z.string().trim().min(1).refine(Boolean).brand('Order')],
    ['times as text', z.iso.datetime()],
    ['a pipe of plain schemas', z.string().pipe(z.string().min(2))],
    ['anything', z.unknown()],
  ])('%s are allowed', (_name, schema) => {
    expect(problemOf(() => define({ input: schema, output: schema }))).toBe('defined');
  });
});

test('compensate names its tool whichever way it is given', () => {
  expect(toolOf(define({ compensate: { tool: writeTool, input: toNull } }))?.compensate).toEqual({
    tool: writeTool,
    toolName: 'payments.refund',
    input: toNull,
  });
  expect(toolOf(define({ compensate: { tool: 'charge.back', input: toNull } }))?.compensate).toMatchObject({
    tool: 'charge.back',
    toolName: 'charge.back',
  });
});

test('requires holds the approval, with or without covers', () => {
  const definition = approvalOf(refundApproval);
  expect(toolOf(define({ requires: refundApproval }))?.requires).toEqual({ approval: definition, covers: null });
  expect(toolOf(define({ requires: { approval: refundApproval, covers: toOrder } }))?.requires).toEqual({
    approval: definition,
    covers: toOrder,
  });
});

test.each([
  [{ effect: 'read' }, 'repeat'],
  [{ reconcile: toNull }, 'reconcile'],
  [{ reconcile: toNull, idempotent: true }, 'reconcile'],
  [{ idempotent: true }, 'repeat'],
  [{}, 'human'],
])('recovery follows the table of DESIGN 3.2: %o is %s', (change, recovery) => {
  const definition = toolOf(define(change)) as ToolDefinition;
  expect(recoveryOf(definition)).toBe(recovery);
});

describe('approval() and decide()', () => {
  const approvalSpec = {
    name: 'a',
    version: '1',
    covers: z.object({ orderId: z.string() }),
    approvers: { roles: ['finance'] },
    expiresInMs: 1000,
    authorize: () => true,
  };
  const decideSpec = { name: 'd', version: '1', proposals: proposing(z.object({ cents: z.int() })), prompt: () => [] };

  test('fill in defaults', () => {
    expect(approvalOf(approval(approvalSpec))).toMatchObject({
      approvers: { roles: ['finance'], quorum: 1, notRequester: false },
      resourceVersion: null,
    });
    expect(decideOf(decide(decideSpec))).toMatchObject({
      model: 'default',
      maxAttempts: 3,
      tokenBudget: null,
      proposals: { types: ['PLAN'], schemas: { PLAN: { jsonSchema: { type: 'object', required: ['cents'] } } } },
    });
  });

  test('take a proposal with options', () => {
    const schema = z.object({ cents: z.int() });
    const definition = decideOf(decide({ ...decideSpec, proposals: proposing({ schema }) }));
    expect(definition?.proposals.schemas['PLAN']?.schema).toBe(schema);
  });

  test.each([
    [{ approvers: { roles: [] } }, /roles is an array; name at least one role/],
    [{ approvers: { roles: ['x'], quorum: 0 } }, /quorum is 0/],
    [{ expiresInMs: 5 }, /expiresInMs is 5/],
    [{ authorize: undefined }, /authorize is undefined/],
    [{ resourceVersion: 'v1' }, /resourceVersion is 'v1'/],
    [{ covers: z.date() }, /covers is not plain JSON/],
  ])('approval with %o is refused', (change, message) => {
    expect(problemOf(() => approval({ ...approvalSpec, ...change } as typeof approvalSpec))).toMatch(message);
  });

  test.each([
    [{ proposals: { types: [], specs: {} } }, /proposals is an object; write events.pick/],
    [{ proposals: undefined }, /proposals is undefined/],
    [{ proposals: proposing(z.object({ when: z.date() })) }, /proposals.PLAN is not plain JSON/],
    [{ proposals: proposing(5 as never) }, /proposals.PLAN is 5/],
    [{ prompt: 'Hello' }, /prompt is 'Hello'/],
    [{ maxAttempts: 0 }, /maxAttempts is 0/],
    [{ tokenBudget: 0 }, /tokenBudget is 0/],
    [{ model: 5 }, /model is 5/],
  ])('decide with %o is refused', (change, message) => {
    expect(problemOf(() => decide({ ...decideSpec, ...change } as unknown as typeof decideSpec))).toMatch(message);
  });
});
