import { expect, test } from 'vitest';
import { PawlError } from '../../src/errors.ts';
import { isNotExecuted, isToolFailure, NotExecuted, toolError, ToolFailure } from '../../src/tools/outcome.ts';

test('ToolFailure and NotExecuted are told apart and keep details and cause', () => {
  const cause = new Error('409');
  const failure = new ToolFailure('declined', { details: { code: 'x' }, cause });
  expect([isToolFailure(failure), isNotExecuted(failure)]).toEqual([true, false]);
  expect(failure).toMatchObject({ name: 'ToolFailure', message: 'declined', details: { code: 'x' }, cause });
  const absent = new NotExecuted('full');
  expect([isToolFailure(absent), isNotExecuted(absent)]).toEqual([false, true]);
  expect(absent.details).toBeNull();
});

test('toolError narrows a stored fault, and is total', () => {
  expect(toolError({ code: 'TOOL_FAILED', message: 'no', details: [1] })).toEqual({
    code: 'TOOL_FAILED',
    message: 'no',
    details: [1],
  });
  expect(toolError({ code: 'TOOL_TIMEOUT', message: 'slow' })).toMatchObject({ details: null });
  expect(toolError(new PawlError('POLICY_DENIED', 'night'))).toMatchObject({ code: 'POLICY_DENIED', message: 'night' });
  expect(toolError(new Error('bug'))).toEqual({ code: 'UNKNOWN', message: 'bug', details: null });
  for (const value of [undefined, null, 'text', Symbol('x'), {}]) expect(toolError(value).code).toBe('UNKNOWN');
});
