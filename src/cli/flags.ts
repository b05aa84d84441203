/** The flags of one command line, read with their type; what does not fit is USAGE with what was given and allowed. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf, PawlError } from '../errors.ts';
import type { Json } from '../records.ts';
import type { Io } from './io.ts';

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

export class Flags {
  readonly #values: Values;

  constructor(values: Values) {
    this.#values = values;
  }

  is(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** @throws USAGE */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined || value === '') throw usage(`--${name} is needed.`, { flag: name });
    return value;
  }

  list(name: string): string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  }

  /** A whole number from `min` to `max`. @throws USAGE */
  whole(name: string, min: number, max: number): number | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const value = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    const allowed = max >= Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
    throw usage(`--${name} is '${given}'; it takes a whole number, ${allowed}.`, { flag: name, given, min, max });
  }

  /** A number above `min` up to `max`. @throws USAGE */
  number(name: string, min: number, max: number): number | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const value = /^\d+(\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
    if (value > min && value <= max) return value;
    throw usage(`--${name} is '${given}'; it takes a number above ${min}, at most ${max}.`, { flag: name, given, max });
  }

  /** @throws USAGE */
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined {
    const given = this.text(name);
    if (given === undefined) return undefined;
    const found = allowed.find((value) => value === given);
    if (found !== undefined) return found;
    throw usage(`--${name} is '${given}'; it takes one of ${allowed.join(', ')}.`, {
      flag: name,
      given,
      allowed: [...allowed],
    });
  }

  /** `K=V`, given any number of times. @throws USAGE */
  pairs(name: string): Record<string, string> {
    const pairs = this.list(name).map((given): [string, string] => {
      const at = given.indexOf('=');
      if (at < 1) throw usage(`--${name} is '${given}'; it takes KEY=VALUE.`, { flag: name, given });
      return [given.slice(0, at), given.slice(at + 1)];
    });
    return Object.fromEntries(pairs);
  }
}

export function usage(message: string, details: Json = null): PawlError {
  return new PawlError('USAGE', message, { details });
}

/** JSON as it stands, `@FILE`, or `@-` for standard input. @throws USAGE */
export function readJson(what: string, given: string, io: Io): Json {
  let text = given;
  if (given.startsWith('@')) {
    const file = given.slice(1);
    try {
      text = file === '-' ? io.readStdin() : readFileSync(resolve(io.cwd, file), 'utf8');
    } catch (error) {
      throw usage(`${what} ${given} cannot be read: ${messageOf(error)}.`, { file });
    }
  }
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text;
    throw usage(`${what} is not JSON (${messageOf(error)}): ${shown}`, { given: shown });
  }
}
