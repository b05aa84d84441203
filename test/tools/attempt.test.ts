import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { findNonJson } from '../../src/json.ts';
import { performAttempt } from '../../src/tools/attempt.ts';
import { NotExecuted, ToolFailure } from '../../src/tools/outcome.ts';
import { attemptCall, refund, run, steppedClock } from './fixtures.ts';

// Vitest fails the run on an unhandled rejection, so a late rejection that nobody takes cannot pass unseen.

const effects = ['read', 'write'] as const;

function throwing(effect: 'read' | 'write', error: unknown): ReturnType<typeof refund> {
  return refund({
    effect,
    execute: async () => {
      throw error;
    },
  });
}

/** An answer that the test gives when it wants to. */
function controlled(): { promise: Promise<unknown>; give: (value: unknown) => void; fail: (error: unknown) => void } {
  const control: { give?: (value: unknown) => void; fail?: (error: unknown) => void } = {};
  const promise = new Promise((give, fail) => Object.assign(control, { give, fail }));
  return { promise, give: (value) => control.give?.(value), fail: (error) => control.fail?.(error) };
}

async function storedText(length: number): Promise<unknown> {
  return performAttempt(refund({ output: z.string(), execute: async () => 'x'.repeat(length) }), attemptCall());
}

function boom(): never {
  throw new Error('hook');
}

class Refund {
  readonly refundId = 'rf_1';
}

describe('what execute ends with decides the outcome', () => {
  test.each(effects)('%s: a value that fits has succeeded, as parsed', async (effect) => {
    const tool = refund({ effect, execute: async () => ({ refundId: 'rf_1', extra: true }) });
    expect(await performAttempt(tool, attemptCall())).toEqual({ outcome: 'succeeded', output: { refundId: 'rf_1' } });
  });

  test('read: a value that does not fit has failed with TOOL_OUTPUT_INVALID', async () => {
    const tool = refund({ effect: 'read', execute: async () => ({ refundId: 7 }) });
    expect(await performAttempt(tool, attemptCall())).toMatchObject({
      outcome: 'failed',
      error: {
        code: 'TOOL_OUTPUT_INVALID',
        message: expect.stringContaining('refundId'),
        details: { issues: [{ path: 'refundId', code: 'invalid_type' }] },
      },
    });
  });

  test('write: a value that does not fit has succeeded, with the raw value and the evidence', async () => {
    const tool = refund({ execute: async () => ({ refundId: 7 }) });
    expect(await performAttempt(tool, attemptCall())).toMatchObject({
      outcome: 'succeeded',
      output: { refundId: 7 },
      invalid: { code: 'TOOL_OUTPUT_INVALID', details: { issues: [{ path: 'refundId' }] } },
    });
  });

  test.each(effects)('%s: NotExecuted is not_executed', async (effect) => {
    const tool = throwing(effect, new NotExecuted('queue full', { details: { depth: 9 } }));
    expect(await performAttempt(tool, attemptCall())).toEqual({
      outcome: 'not_executed',
      error: { code: 'TOOL_NOT_EXECUTED', message: 'queue full', details: { depth: 9 } },
    });
  });

  test.each(effects)('%s: ToolFailure has failed', async (effect) => {
    const tool = throwing(effect, new ToolFailure('card declined', { details: { reason: 'card_declined' } }));
    expect(await performAttempt(tool, attemptCall())).toEqual({
      outcome: 'failed',
      error: { code: 'TOOL_FAILED', message: 'card declined', details: { reason: 'card_declined' } },
    });
  });

  test.each(effects)('%s: any other throw is unknown, also a synchronous one', async (effect) => {
    const reset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    for (const execute of [
      () => Promise.reject(reset),
      () => {
        throw reset;
      },
    ]) {
      expect(await performAttempt(refund({ effect, execute }), attemptCall())).toEqual({
        outcome: 'unknown',
        error: { code: 'TOOL_FAILED', message: 'socket hang up', details: { code: 'ECONNRESET' } },
      });
    }
  });

  test.each(effects)('%s: a time-out is unknown with TOOL_TIMEOUT', async (effect) => {
    const clock = steppedClock();
    const tool = refund({ effect, execute: () => new Promise(() => {}) });
    const end = performAttempt(tool, attemptCall({ clock, timeoutMs: 700 }));
    expect(clock.sleeps).toEqual([700]);
    clock.ring();
    expect(await end).toMatchObject({ outcome: 'unknown', error: { code: 'TOOL_TIMEOUT' } });
  });
});

test('a failure of a second copy of the package is recognised by its mark', async () => {
  vi.resetModules();
  const copy = await import('../../src/tools/outcome.ts');
  expect(copy.ToolFailure).not.toBe(ToolFailure);
  const failing = refund({ execute: () => Promise.reject(new copy.ToolFailure('no')) });
  const absent = refund({ execute: () => Promise.reject(new copy.NotExecuted('not sent')) });
  expect(await performAttempt(failing, attemptCall())).toMatchObject({ outcome: 'failed' });
  expect(await performAttempt(absent, attemptCall())).toMatchObject({ outcome: 'not_executed' });
});

describe('time-outs', () => {
  test('the signal aborts, an execute that ignores it is left at once, and its late answer or rejection is dropped', async () => {
    for (const late of ['answer', 'rejection']) {
      const clock = steppedClock();
      const { promise, give, fail } = controlled();
      const seen: AbortSignal[] = [];
      const onAnswer = vi.fn<() => void>();
      const tool = refund({
        execute: ({ signal }) => {
          seen.push(signal);
          return promise;
        },
      });
      const end = performAttempt(tool, attemptCall({ clock, onAnswer }));
      clock.ring();
      expect(await end).toMatchObject({ outcome: 'unknown', error: { code: 'TOOL_TIMEOUT' } });
      expect(seen).toMatchObject([{ aborted: true, reason: { name: 'TimeoutError' } }]);
      if (late === 'answer') give({ refundId: 'late' });
      else fail(new Error('late'));
      await new Promise((resolve) => setImmediate(resolve));
      expect(onAnswer).not.toHaveBeenCalled();
    }
  });

  test('an answer in time leaves no timer and no listener behind, and does not abort the signal', async () => {
    const clock = steppedClock();
    const caller = new AbortController();
    const removed = vi.spyOn(caller.signal, 'removeEventListener');
    let seen: AbortSignal | undefined;
    const tool = refund({
      execute: async ({ signal }) => {
        seen = signal;
        return { refundId: 'rf_1' };
      },
    });
    await performAttempt(tool, attemptCall({ clock, signal: caller.signal }));
    expect(clock.open()).toBe(0);
    expect(removed).toHaveBeenCalledOnce();
    caller.abort();
    expect(seen?.aborted).toBe(false);
  });

  test.each([0, -5, Number.NaN])('with %d ms left nothing is called: not_executed', async (timeoutMs) => {
    const execute = vi.fn<() => void>();
    const onSent = vi.fn<() => void>();
    expect(await performAttempt(refund({ execute }), attemptCall({ timeoutMs, onSent }))).toMatchObject({
      outcome: 'not_executed',
      error: { code: 'TOOL_NOT_EXECUTED' },
      notSent: true,
    });
    expect(execute).not.toHaveBeenCalled();
    expect(onSent).not.toHaveBeenCalled();
  });
});

describe('aborts', () => {
  test.each(effects)('%s: an execute that ends on the abort is unknown', async (effect) => {
    const caller = new AbortController();
    const tool = refund({
      effect,
      execute: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    });
    const end = performAttempt(tool, attemptCall({ signal: caller.signal }));
    caller.abort(new Error('the state was left'));
    expect(await end).toMatchObject({ outcome: 'unknown', error: { code: 'TOOL_FAILED' } });
  });

  test('read: one that ignores the abort is left at once', async () => {
    const caller = new AbortController();
    const tool = refund({ effect: 'read', execute: () => new Promise(() => {}) });
    const end = performAttempt(tool, attemptCall({ signal: caller.signal, clock: steppedClock() }));
    caller.abort();
    expect(await end).toMatchObject({ outcome: 'unknown', error: { code: 'TOOL_FAILED' } });
  });

  test('write: one that answers after the abort is still believed', async () => {
    const caller = new AbortController();
    const { promise, give } = controlled();
    const execute = (): unknown => promise;
    const end = performAttempt(refund({ execute }), attemptCall({ signal: caller.signal, clock: steppedClock() }));
    caller.abort();
    give({ refundId: 'rf_1' });
    expect(await end).toEqual({ outcome: 'succeeded', output: { refundId: 'rf_1' } });
  });

  test('aborted before: nothing is called', async () => {
    const execute = vi.fn<() => void>();
    const end = await performAttempt(refund({ execute }), attemptCall({ signal: AbortSignal.abort() }));
    expect(end).toMatchObject({ outcome: 'not_executed', error: { code: 'TOOL_NOT_EXECUTED' }, notSent: true });
    expect(execute).not.toHaveBeenCalled();
  });
});

describe('hostile outputs', () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  let deep: unknown = 'end';
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  const hostile: [string, unknown][] = [
    ['cyclic', cyclic],
    ['Date', new Date(0)],
    ['BigInt', 1n],
    ['1 MB', { refundId: 'x'.repeat(1_000_000) }],
    ['NaN', Number.NaN],
    ['nested NaN', { list: [1, Number.NaN] }],
    ['undefined', undefined],
    ['undefined in a list', [undefined]],
    ['a hole', Array.from({ length: 2 }).fill(0, 1)],
    ['Map', new Map([['a', 1]])],
    ['function', () => 1],
    ['class instance', new Refund()],
    ['lone surrogate', '\uD800'],
    ['toJSON', { toJSON: () => ({ refundId: 'x' }) }],
    ['50,000 deep', deep],
    [
      'a getter that throws',
      {
        get refundId() {
          throw new Error('no');
        },
      },
    ],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          ownKeys() {
            throw new Error('no');
          },
        },
      ),
    ],
  ];

  test.each(hostile)('%s, from a write: succeeded without output, evidence small and JSON', async (_name, value) => {
    const tool = refund({ output: z.unknown(), execute: async () => value });
    const end = await performAttempt(tool, attemptCall());
    expect(end).toMatchObject({ outcome: 'succeeded', output: null, invalid: { code: 'TOOL_OUTPUT_INVALID' } });
    const text = JSON.stringify(end);
    expect(text.length).toBeLessThan(10_000);
    expect(JSON.parse(text)).toEqual(end);
  });

  test.each(hostile)('%s, from a read: TOOL_OUTPUT_INVALID', async (_name, value) => {
    const tool = refund({ effect: 'read', output: z.unknown(), execute: async () => value });
    const end = await performAttempt(tool, attemptCall());
    expect(end).toMatchObject({ outcome: 'failed', error: { code: 'TOOL_OUTPUT_INVALID' } });
  });

  test('a value of exactly 256 KB is stored, one byte more is not', async () => {
    expect(await storedText(256 * 1024 - 2)).not.toHaveProperty('invalid');
    expect(await storedText(256 * 1024 - 1)).toMatchObject({ output: null, invalid: { details: { bytes: 262_145 } } });
  });

  test('a property that the schema lets be undefined is left out', async () => {
    const output = z.object({ refundId: z.string(), note: z.string().optional() });
    const tool = refund({ output, execute: async () => ({ refundId: 'rf_1', note: undefined }) });
    const end = await performAttempt(tool, attemptCall());
    expect(end).toStrictEqual({ outcome: 'succeeded', output: { refundId: 'rf_1' } });
  });

  test('the output is parsed once and is a copy', async () => {
    const value = { list: [1] };
    const schema = z.unknown();
    const parse = vi.spyOn(schema, 'safeParse');
    const end = await performAttempt(refund({ output: schema, execute: async () => value }), attemptCall());
    value.list.push(2);
    expect(end).toMatchObject({ output: { list: [1] } });
    expect(parse).toHaveBeenCalledOnce();
  });

  test('a raw value that did not fit is a copy as well', async () => {
    const value = { list: [1] };
    const end = await performAttempt(refund({ execute: async () => value }), attemptCall());
    value.list.push(2);
    expect(end).toMatchObject({ output: { list: [1] }, invalid: { code: 'TOOL_OUTPUT_INVALID' } });
  });

  test('a refinement that throws or is asynchronous means: does not fit', async () => {
    const broken = z.string().refine(() => {
      throw new Error('bug');
    });
    for (const output of [broken, z.string().refine(async () => true)]) {
      const end = await performAttempt(refund({ output, execute: async () => 'x' }), attemptCall());
      expect(end).toMatchObject({ outcome: 'succeeded', output: 'x', invalid: { code: 'TOOL_OUTPUT_INVALID' } });
    }
  });

  test('evidence of a sensitive output is withheld', async () => {
    const tool = refund({ sensitive: ['output.iban'], execute: async () => new Map([['iban', 'DE89']]) });
    expect(JSON.stringify(await performAttempt(tool, attemptCall()))).not.toContain('DE89');
  });
});

test.each([
  ['null', null],
  ['no prototype', Object.create(null)],
  ['a symbol', Symbol('x')],
  ['a frozen text', 'plain'],
  ['long and not well-formed', new Error(`\uD800${'x'.repeat(100_000)}`)],
  ['details that are not JSON', new ToolFailure('no', { details: { when: new Date(0) } as never })],
  ['large details', new ToolFailure('no', { details: 'x'.repeat(100_000) })],
])('thrown %s becomes a small JSON fault', async (_name, thrown) => {
  const end = await performAttempt(throwing('write', thrown), attemptCall());
  const text = JSON.stringify(end);
  expect(text.length).toBeLessThan(5000);
  expect(findNonJson(end)).toBeNull();
  expect(JSON.parse(text)).toEqual(end);
});

test('the tool gets a copy of the input and all of its context', async () => {
  const input = { orderId: 'o1' };
  const seen: unknown[] = [];
  const tool = refund({
    execute: async (ctx) => {
      seen.push({ ...ctx, signal: ctx.signal instanceof AbortSignal, input: { ...ctx.input } });
      ctx.input.orderId = 'changed';
      return { refundId: 'rf_1' };
    },
  });
  await performAttempt(tool, attemptCall({ input, attempt: 2, artifacts: 'artifacts' }));
  expect(input).toEqual({ orderId: 'o1' });
  expect(seen).toEqual([
    { input: { orderId: 'o1' }, operationId: 'op_1', attempt: 2, signal: true, run, artifacts: 'artifacts' },
  ]);
});

test('onSent follows the call at once, onAnswer its end, and the judgement waits for onAnswer', async () => {
  const order: string[] = [];
  const output = z.string().refine(() => order.push('judged') > 0);
  const tool = refund({
    output,
    execute: async () => {
      order.push('execute');
      await Promise.resolve();
      order.push('answered');
      return 'x';
    },
  });
  const onAnswer = async (): Promise<void> => {
    order.push('onAnswer');
    await new Promise((resolve) => setImmediate(resolve));
    order.push('onAnswer done');
  };
  const end = performAttempt(tool, attemptCall({ onSent: () => order.push('onSent'), onAnswer }));
  expect(order).toEqual(['execute', 'onSent']);
  await end;
  expect(order).toEqual(['execute', 'onSent', 'answered', 'onAnswer', 'onAnswer done', 'judged']);
});

test('hooks that throw do not make it reject', async () => {
  expect(await performAttempt(refund(), attemptCall({ onSent: boom }))).toMatchObject({ outcome: 'unknown' });
  expect(await performAttempt(refund(), attemptCall({ onAnswer: boom }))).toMatchObject({ outcome: 'unknown' });
});
