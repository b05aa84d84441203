/** The one error class. Codes are stable between majors; messages are free to improve. */
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';
import type { Json } from './records.ts';

export { ERROR_CODES, type ErrorCode } from './error-codes.ts';

const MARK = Symbol.for('pawl.error');

export interface PawlErrorOptions {
  details?: Json;
  cause?: unknown;
}

/**
 * What was refused, for which id, with both values, and what to do. `retryable` says that the same call may succeed
 * later unchanged; `httpStatus` and `exitCode` come from the table of codes.
 */
export class PawlError extends Error {
  readonly code: ErrorCode;
  readonly details: Json;
  readonly retryable: boolean;
  readonly httpStatus: number;
  readonly exitCode: number;

  constructor(code: ErrorCode, message: string, options: PawlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const row = ERROR_CODES[code];
    this.name = 'PawlError';
    this.code = code;
    this.details = options.details ?? null;
    this.retryable = row.retryable;
    this.httpStatus = row.httpStatus;
    this.exitCode = row.exitCode;
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** Recognises a PawlError by its mark, also from another copy of the package; with `code`, only that one. */
export function isPawlError<C extends ErrorCode>(error: unknown, code?: C): error is PawlError & { code: C } {
  if (typeof error !== 'object' || error === null || !(MARK in error)) return false;
  return code === undefined || (error as unknown as PawlError).code === code;
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
