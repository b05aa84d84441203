import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineEvents, resolveSenders, type EventInputsOf, type EventsOf } from '../../src/machines/define-events.ts';

const events = defineEvents({
  PLAN: z.object({ amountCents: z.int().positive(), note: z.string().default('none') }),
  PING: z.object({}),
  DISPUTE: { schema: z.object({ id: z.string() }), whenIllegal: 'defer', from: ['caller'] },
});

describe('types', () => {
  test('an empty payload gives exactly { type }, others what their schema gives', () => {
    expectTypeOf<EventsOf<typeof events>>().toEqualTypeOf<
      { type: 'PLAN'; amountCents: number; note: string } | { type: 'PING' } | { type: 'DISPUTE'; id: string }
    >();
    expectTypeOf<EventInputsOf<typeof events>>().toEqualTypeOf<
      | { type: 'PLAN'; amountCents: number; note?: string | undefined }
      | { type: 'PING' }
      | { type: 'DISPUTE'; id: string }
    >();
  });

  test('pick keeps the types of what is picked', () => {
    const picked = events.pick('PLAN');
    expectTypeOf<EventsOf<typeof picked>>().toEqualTypeOf<{ type: 'PLAN'; amountCents: number; note: string }>();
    // @ts-expect-error no such event
    expect(() => events.pick('NOPE')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

test('policies and senders have defaults', () => {
  expect(events.policyOf('PLAN')).toBe('reject');
  expect(events.policyOf('DISPUTE')).toBe('defer');
  expect(events.policyOf('toString')).toBe('reject');
  expect(events.has('PLAN')).toBe(true);
  expect(events.has('constructor')).toBe(false);
  expect(events.typesFrom('caller')).toEqual(['PLAN', 'PING', 'DISPUTE']);
  expect(events.typesFrom('machine')).toEqual(['PLAN', 'PING']);
  expect(events.typesFrom('model')).toEqual([]);
});

test('a proposal comes from the model alone, unless it says otherwise', () => {
  const resolved = resolveSenders(events, new Set(['PLAN', 'DISPUTE']));
  expect(resolved.typesFrom('caller')).toEqual(['PING', 'DISPUTE']);
  expect(resolved.typesFrom('model')).toEqual(['PLAN']);
  expect(resolved.pick('PLAN').typesFrom('model')).toEqual(['PLAN']);
});

describe('a payload', () => {
  test('is parsed; the result, with defaults and without unknown fields, is the event', () => {
    expect(events.parsePayload('PLAN', { amountCents: 5, extra: 1 })).toEqual({
      ok: true,
      event: { type: 'PLAN', amountCents: 5, note: 'none' },
    });
    expect(events.parsePayload('PING', undefined)).toEqual({ ok: true, event: { type: 'PING' } });
    expect(events.parsePayload('PING', { type: 'PLAN' })).toEqual({ ok: true, event: { type: 'PING' } });
  });

  test.each([
    ['NOPE', {}, /unknown event 'NOPE'/],
    ['toString', {}, /unknown event/],
    ['PLAN', { amountCents: 1.5 }, /amountCents/],
    ['PLAN', { amountCents: 5, when: new Date(0) }, /payload.when is Date/],
    ['PLAN', 'text', /expected object/],
    ['PLAN', null, /amountCents/],
  ])('%s %j is refused with the reason', (type, payload, reason) => {
    const parsed = events.parsePayload(type, payload);
    expect(parsed).toEqual({ ok: false, reason: expect.stringMatching(reason) as string });
  });
});

const payload = z.object({ id: z.string() });

test.each([
  ['a name with a dot', { 'a.b': payload }, /a letter followed by/],
  ['an internal name', { 'xstate.done': payload }, /a letter followed by/],
  ['a name that begins with a digit', { '1x': payload }, /a letter followed by/],
  ['a schema that is no object', { X: z.string() }, /must be a z.object/],
  ['a union', { X: z.union([payload, payload]) }, /must be a z.object/],
  ['no schema', { X: {} }, /must be a z.object/],
  ['a field named type', { X: z.object({ type: z.string() }) }, /hides the event's own type/],
  ['a date', { X: z.object({ when: z.date() }) }, /not plain JSON/],
  ['a coerced date', { X: z.object({ when: z.coerce.date() }) }, /not plain JSON/],
  ['a bigint', { X: z.object({ n: z.bigint() }) }, /not plain JSON/],
  ['a transform', { X: z.object({ n: z.string().transform(Number) }) }, /not plain JSON/],
  ['an unknown policy', { X: { schema: payload, whenIllegal: 'ignore' } }, /whenIllegal is one of/],
  ['an unknown sender', { X: { schema: payload, from: ['webhook'] } }, /from lists some of/],
  ['no sender', { X: { schema: payload, from: [] } }, /from lists some of/],
])('refused: %s', (_name, specs, message) => {
  expect(() => defineEvents(specs as never)).toThrow(
    expect.objectContaining({ code: 'AGENT_INVALID', message: expect.stringMatching(message) as string }),
  );
});
