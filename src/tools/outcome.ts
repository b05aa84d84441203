/** What an author says about one call: the errors that `execute` throws and the answers that `reconcile` gives. */
import type { Json } from '../records.ts';

const FAILURE = Symbol.for('pawl.tool_failure');
const ABSENT = Symbol.for('pawl.not_executed');
const ANSWER = Symbol.for('pawl.reconciled');

export interface OutcomeOptions {
  /** Plain data for the chart's `onError`; at most 16 KB, larger or other values are kept as a short text. */
  details?: Json | undefined;
  cause?: unknown;
}

/** The provider said no, for good: nothing happened and nothing will. The chart gets `TOOL_FAILED`; no retry. */
export class ToolFailure extends Error {
  readonly details: Json;
  constructor(message: string, options: OutcomeOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ToolFailure';
    this.details = options.details ?? null;
    Object.defineProperty(this, FAILURE, { value: true });
  }
}

/**
 * Proved by the tool: this attempt had no effect and can have none later. It is tried again.
 * It says nothing of earlier attempts whose outcome is not known.
 */
export class NotExecuted extends Error {
  readonly details: Json;
  constructor(message: string, options: OutcomeOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NotExecuted';
    this.details = options.details ?? null;
    Object.defineProperty(this, ABSENT, { value: true });
  }
}

/** Recognises a ToolFailure by its mark, also from another copy of the package. */
export function isToolFailure(error: unknown): error is ToolFailure {
  return typeof error === 'object' && error !== null && FAILURE in error;
}

/** Recognises a NotExecuted by its mark, also from another copy of the package. */
export function isNotExecuted(error: unknown): error is NotExecuted {
  return typeof error === 'object' && error !== null && ABSENT in error;
}

/** What `reconcile` answers; made by `happened`, `didNotHappen` and `unknown`. */
export type Reconciled<T> = { readonly [ANSWER]: true } & (
  | { readonly kind: 'happened'; readonly output: T }
  | { readonly kind: 'absent'; readonly final: boolean }
  | { readonly kind: 'unknown'; readonly why: string }
);

/** The provider has it; `output` is what `execute` would have returned. Believed at once. */
export function happened<T>(output: T): Reconciled<T> {
  return { [ANSWER]: true, kind: 'happened', output };
}

/**
 * The provider does not have it. Believed once no attempt can still arrive; `final: true` says that the tool made a
 * later arrival impossible (for example by voiding the key), then it is believed at once.
 */
export function didNotHappen(options: { final?: boolean | undefined } = {}): Reconciled<never> {
  return { [ANSWER]: true, kind: 'absent', final: options.final === true };
}

/** The provider could not say; it is asked again with back-off until `reconcileForMs`. */
export function unknown(why = 'the tool could not tell'): Reconciled<never> {
  return { [ANSWER]: true, kind: 'unknown', why };
}

/** `value` if it is one of the three answers, also from another copy of the package; null for any other value. */
export function asReconciled(value: unknown): Reconciled<unknown> | null {
  return typeof value === 'object' && value !== null && ANSWER in value ? (value as Reconciled<unknown>) : null;
}

/** Codes of tools, decisions and approvals at `onError`. */
export type ToolErrorCode =
  | 'TOOL_FAILED'
  | 'TOOL_NOT_EXECUTED'
  | 'TOOL_TIMEOUT'
  | 'TOOL_INPUT_INVALID'
  | 'TOOL_OUTPUT_INVALID'
  | 'DUPLICATE_OPERATION'
  | 'BUDGET_EXHAUSTED'
  | 'DECISION_EXHAUSTED'
  | 'POLICY_DENIED'
  | 'APPROVAL_MISSING'
  | 'APPROVAL_REJECTED'
  | 'APPROVAL_EXPIRED'
  | 'APPROVAL_INVALIDATED';

export interface ToolError {
  /** A ToolErrorCode, the code of a child run, or `UNKNOWN` for an error that Pawl did not make. */
  code: ToolErrorCode | 'UNKNOWN' | (string & {});
  message: string;
  details: Json;
}

/** Narrows `event.error` of an `onError`, which XState types as unknown. Pure and total: safe in guards and assigns. */
export function toolError(error: unknown): ToolError {
  if (typeof error !== 'object' || error === null) return { code: 'UNKNOWN', message: String(error), details: null };
  const { code, message, details } = error as { code?: unknown; message?: unknown; details?: Json };
  return {
    code: typeof code === 'string' ? code : 'UNKNOWN',
    message: typeof message === 'string' ? message : '',
    details: details ?? null,
  };
}
