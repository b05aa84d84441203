import { expect, test } from 'vitest';
import { z } from 'zod';
import { parseToolInput } from '../../src/tools/input.ts';

const tool = {
  name: 'payments.refund',
  input: z.object({ orderId: z.string(), currency: z.string().default('EUR'), note: z.string().optional() }),
};

test('an input that fits comes back as parsed: defaults filled, unknown and undefined properties left out', () => {
  expect(parseToolInput(tool, { orderId: 'o1', other: 1, note: undefined })).toStrictEqual({
    ok: true,
    input: { orderId: 'o1', currency: 'EUR' },
  });
});

test('what was parsed parses to itself', () => {
  const first = parseToolInput(tool, { orderId: 'o1' });
  expect(first.ok && parseToolInput(tool, first.input)).toStrictEqual(first);
});

test('an input that does not fit is TOOL_INPUT_INVALID with paths, and without the value', () => {
  const answer = parseToolInput(tool, { orderId: 4_111_111 });
  expect(answer).toMatchObject({
    ok: false,
    error: { code: 'TOOL_INPUT_INVALID', details: { tool: 'payments.refund', issues: [{ path: 'orderId' }] } },
  });
  expect(JSON.stringify(answer)).not.toContain('4111111');
});

test('an input that is not JSON is TOOL_INPUT_INVALID', () => {
  const open = { name: 'any', input: z.unknown() };
  for (const input of [undefined, { when: new Date(0) }, [Number.NaN], 1n]) {
    expect(parseToolInput(open, input)).toMatchObject({ ok: false, error: { code: 'TOOL_INPUT_INVALID' } });
  }
});
