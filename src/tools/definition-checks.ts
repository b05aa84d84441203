/** Checks shared by tool(), decide() and approval(): each names the definition, what was found and what to write. */
import { PawlError } from '../errors.ts';

const NAME = /^[A-Za-z0-9._:-]{1,200}$/;

/** @throws {PawlError} TOOL_INVALID always; `what` is `Tool 'payments.refund'`. */
export function refuseDefinition(what: string, found: string, write: string): never {
  throw new PawlError('TOOL_INVALID', `${what}: ${found}; ${write}.`, { details: { what, found, write } });
}

/** Checks `name` and `version`; returns `Tool 'payments.refund'`, the subject of every further message. */
export function checkNaming(kind: 'Tool' | 'Decision' | 'Approval', spec: { name: unknown; version: unknown }): string {
  const what = `${kind} '${String(spec.name)}'`;
  for (const field of ['name', 'version'] as const) {
    const value = spec[field];
    if (typeof value !== 'string' || !NAME.test(value)) {
      refuseDefinition(what, `${field} is ${shown(value)}`, 'write 1 to 200 characters of A-Z a-z 0-9 . _ : -');
    }
  }
  return what;
}

/** Checks a whole number within `min` and `max`, both included. */
export function checkWhole(what: string, field: string, value: unknown, min: number, max: number): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return;
  refuseDefinition(what, `${field} is ${shown(value)}`, `write a whole number from ${min} to ${max}`);
}

export function checkFunction(what: string, field: string, value: unknown): void {
  if (typeof value !== 'function') refuseDefinition(what, `${field} is ${shown(value)}`, 'write a function');
}

export function checkOneOf(what: string, field: string, value: unknown, allowed: readonly string[]): void {
  if (typeof value === 'string' && allowed.includes(value)) return;
  refuseDefinition(what, `${field} is ${shown(value)}`, `write ${allowed.map((item) => `'${item}'`).join(' or ')}`);
}

/** A found value in a few characters: `undefined`, `'x y'`, `-1`, `a function`, `an object`. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 80)}'`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
