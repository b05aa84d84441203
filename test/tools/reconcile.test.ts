import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { didNotHappen, happened, NotExecuted, ToolFailure, unknown } from '../../src/tools/outcome.ts';
import { askReconcile, type ReconcileCall } from '../../src/tools/reconcile.ts';
import { refund, run, steppedClock } from './fixtures.ts';

const call = (change: Partial<ReconcileCall> = {}): ReconcileCall => ({
  input: { orderId: 'o1' },
  operationId: 'op_1',
  attempt: 2,
  run,
  signal: new AbortController().signal,
  timeoutMs: 1000,
  clock: systemClock,
  ...change,
});
const answering = (value: unknown): ReturnType<typeof refund> => refund({ reconcile: async () => value });
const throwing = (error: unknown): ReturnType<typeof refund> =>
  refund({
    reconcile: async () => {
      throw error;
    },
  });

describe('the answers', () => {
  test('happened with a value that fits', async () => {
    const answer = await askReconcile(answering(happened({ refundId: 'rf_1', extra: 1 })), call());
    expect(answer).toEqual({ answer: 'happened', output: { refundId: 'rf_1' } });
  });

  test('happened with a value that does not fit is still happened, with evidence', async () => {
    expect(await askReconcile(answering(happened({ refundId: 1 })), call())).toMatchObject({
      answer: 'happened',
      output: { refundId: 1 },
      invalid: { code: 'TOOL_OUTPUT_INVALID' },
    });
    expect(await askReconcile(answering(happened(new Date(0))), call())).toMatchObject({
      answer: 'happened',
      output: null,
      invalid: { code: 'TOOL_OUTPUT_INVALID' },
    });
  });

  test('absent, final only when said so', async () => {
    expect(await askReconcile(answering(didNotHappen()), call())).toEqual({ answer: 'absent', final: false });
    expect(await askReconcile(answering(didNotHappen({ final: true })), call())).toEqual({
      answer: 'absent',
      final: true,
    });
  });

  test('unknown with its reason', async () => {
    expect(await askReconcile(answering(unknown('query API down')), call())).toEqual({
      answer: 'unknown',
      reason: 'query API down',
    });
  });

  test('answers of a second copy of the package are recognised by their mark', async () => {
    vi.resetModules();
    const copy = await import('../../src/tools/outcome.ts');
    expect(await askReconcile(answering(copy.didNotHappen()), call())).toEqual({ answer: 'absent', final: false });
  });

  test.each([undefined, null, true, { kind: 'absent', final: true }, { refundId: 'rf_1' }, 'absent'])(
    'an unmarked %j is unknown: nothing is believed that was not said',
    async (value) => {
      expect(await askReconcile(answering(value), call())).toMatchObject({
        answer: 'unknown',
        reason: expect.stringContaining('didNotHappen()'),
      });
    },
  );
});

describe('no answer', () => {
  test('ToolFailure is failed; every other throw, also NotExecuted, is unknown', async () => {
    expect(await askReconcile(throwing(new ToolFailure('refused')), call())).toEqual({
      answer: 'failed',
      error: { code: 'TOOL_FAILED', message: 'refused' },
    });
    for (const error of [new NotExecuted('not sent'), new Error('503'), null, Symbol('x')]) {
      expect(await askReconcile(throwing(error), call())).toMatchObject({ answer: 'unknown' });
    }
  });

  test('a time-out is unknown and aborts the signal; a late answer is dropped', async () => {
    const clock = steppedClock();
    const seen: AbortSignal[] = [];
    const tool = refund({
      reconcile: ({ signal }) => {
        seen.push(signal);
        return new Promise(() => {});
      },
    });
    const answer = askReconcile(tool, call({ clock }));
    clock.ring();
    expect(await answer).toEqual({ answer: 'unknown', reason: 'reconcile gave no answer within 1000 ms' });
    expect(seen[0]?.aborted).toBe(true);
  });

  test('an abort leaves at once', async () => {
    const caller = new AbortController();
    const tool = refund({ reconcile: () => new Promise(() => {}) });
    const answer = askReconcile(tool, call({ clock: steppedClock(), signal: caller.signal }));
    caller.abort();
    expect(await answer).toMatchObject({ answer: 'unknown' });
  });

  test('aborted before, or a tool without reconcile, is unknown', async () => {
    const reconcile = vi.fn<() => void>();
    expect(await askReconcile(refund({ reconcile }), call({ signal: AbortSignal.abort() }))).toMatchObject({
      answer: 'unknown',
    });
    expect(reconcile).not.toHaveBeenCalled();
    expect(await askReconcile(refund(), call())).toMatchObject({ answer: 'unknown' });
  });
});
