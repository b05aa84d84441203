/** Time and chance inside a step: fed from the macrostep itself, so that replaying it gives the same answer. */
import { PawlError } from '../errors.ts';

/** Where and when a macrostep runs. `sequence` is the macrostep's own number; `atMs` is the store's time, epoch ms. */
export interface StepAt {
  runId: string;
  sequence: number;
  atMs: number;
}

interface Ambient {
  /** Null when guards are only asked, outside any macrostep, and the time is not known. */
  at: StepAt | null;
  draw: (() => number) | null;
  /** `now()` or `random()` was called although the time is not known. */
  asked: boolean;
  /** The first ambient source of time or chance that was called. */
  violation: string | null;
}

let ambient: Ambient | null = null;
let trapping = process.env['NODE_ENV'] !== 'production';

/** Time of the step, epoch ms of the store's clock. Throws IMPURE_MACHINE outside a step. */
export function now(): number {
  return insideStep('now()').atMs;
}

/** A number in [0, 1), the same at every replay of the step; each call gives the next one. Throws IMPURE_MACHINE outside a step. */
export function random(): number {
  const at = insideStep('random()');
  const step = ambient as Ambient;
  step.draw ??= createDraw(`${at.runId}\n${at.sequence}`);
  return step.draw();
}

/** Whether an ambient `Date.now` and its like throws inside a step; on unless NODE_ENV is `production`. */
export function setAmbientTrap(on: boolean): void {
  trapping = on;
}

/** What came of running user code: its value or what it threw, and whether it asked for a time nobody knows. */
export interface Outcome<T> {
  value?: T;
  threw?: { error: unknown };
  asked: boolean;
}

/**
 * Runs user code as (part of) a macrostep. Each call draws random numbers from the start.
 * Throws IMPURE_MACHINE when an ambient source was called, even if the code caught that; any other throw is returned.
 */
export function runPure<T>(at: StepAt | null, code: () => T): Outcome<T> {
  const outer = ambient;
  const step: Ambient = { at, draw: null, asked: false, violation: null };
  ambient = step;
  const release = trapping && outer === null ? setTrap() : null;
  const outcome: Outcome<T> = { asked: false };
  try {
    outcome.value = code();
  } catch (error) {
    outcome.threw = { error };
  } finally {
    release?.();
    ambient = outer;
  }
  outcome.asked = step.asked;
  if (step.violation !== null) throw impure(step.violation, at);
  return outcome;
}

function insideStep(call: string): StepAt {
  if (ambient === null) {
    throw new PawlError(
      'IMPURE_MACHINE',
      `${call} was called outside a step; it works in guards, assigns and mappers.`,
    );
  }
  if (ambient.at === null) {
    ambient.asked = true;
    throw new PawlError('IMPURE_MACHINE', `${call} was called by a guard that is only asked, at no known time.`);
  }
  return ambient.at;
}

function impure(source: string, at: StepAt | null): PawlError {
  const where = at === null ? 'a guard' : `macrostep ${at.sequence} of run ${at.runId}`;
  return new PawlError(
    'IMPURE_MACHINE',
    `${source} was called inside ${where}: replay would give another answer. Use now() and random() from pawl.`,
    { details: { source, runId: at?.runId ?? null, sequence: at?.sequence ?? null } },
  );
}

function violate(source: string): never {
  if (ambient !== null) ambient.violation ??= source;
  throw impure(source, ambient?.at ?? null);
}

const trapDateNow = (): never => violate('Date.now()');

let trappedDate: { real: DateConstructor; proxy: DateConstructor } | null = null;

/** `new Date(iso)` stays; `new Date()`, `Date()` and `Date.now()` throw. */
function dateTrap(real: DateConstructor): DateConstructor {
  if (trappedDate?.real === real) return trappedDate.proxy;
  const proxy: DateConstructor = new Proxy(real, {
    construct(target, args: unknown[], newTarget: object): Date {
      if (args.length === 0) violate('new Date()');
      return Reflect.construct(target, args, (newTarget === proxy ? target : newTarget) as typeof target) as Date;
    },
    apply: () => violate('Date()'),
    get: (target, key, receiver) => (key === 'now' ? trapDateNow : (Reflect.get(target, key, receiver) as unknown)),
  });
  trappedDate = { real, proxy };
  return proxy;
}

/** Ambient sources by the object that holds them, so that an assignment replaces and restores them cheaply. */
const SOURCES = [
  { owner: ownerOf(Math, 'random'), key: 'random', trap: (): never => violate('Math.random()') },
  {
    owner: ownerOf(globalThis.crypto, 'randomUUID'),
    key: 'randomUUID',
    trap: (): never => violate('crypto.randomUUID()'),
  },
  {
    owner: ownerOf(globalThis.crypto, 'getRandomValues'),
    key: 'getRandomValues',
    trap: (): never => violate('crypto.getRandomValues()'),
  },
  { owner: ownerOf(globalThis.performance, 'now'), key: 'now', trap: (): never => violate('performance.now()') },
];

function ownerOf(object: object, key: string): Record<string, unknown> {
  let owner: object | null = object;
  while (owner !== null && !Object.hasOwn(owner, key)) owner = Object.getPrototypeOf(owner) as object | null;
  return (owner ?? object) as Record<string, unknown>;
}

/** Replaces the ambient sources until the returned function is called. A step is synchronous: nobody else sees it. */
function setTrap(): () => void {
  const realDate = globalThis.Date;
  const realNow = realDate.now;
  const real = SOURCES.map(({ owner, key }) => owner[key]);
  realDate.now = trapDateNow;
  globalThis.Date = dateTrap(realDate);
  for (const { owner, key, trap } of SOURCES) owner[key] = trap;
  return () => {
    globalThis.Date = realDate;
    realDate.now = realNow;
    for (let index = 0; index < SOURCES.length; index++) {
      const { owner, key } = SOURCES[index] as (typeof SOURCES)[number];
      owner[key] = real[index];
    }
  };
}

/** sfc32 seeded by a 128-bit text hash. Stored runs replay with it: it must never change. */
function createDraw(seed: string): () => number {
  let [a, b, c, d] = hash128(seed);
  const next = (): number => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let round = 0; round < 12; round++) next();
  return next;
}

/** cyrb128: not cryptographic; spreads neighbouring seeds. */
function hash128(text: string): [number, number, number, number] {
  let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = b ^ Math.imul(a ^ code, 597399067);
    b = c ^ Math.imul(b ^ code, 2869860233);
    c = d ^ Math.imul(c ^ code, 951274213);
    d = a ^ Math.imul(d ^ code, 2716044179);
  }
  a = Math.imul(c ^ (a >>> 18), 597399067);
  b = Math.imul(d ^ (b >>> 22), 2869860233);
  c = Math.imul(a ^ (c >>> 17), 951274213);
  d = Math.imul(b ^ (d >>> 19), 2716044179);
  a ^= b ^ c ^ d;
  return [a | 0, (b ^ a) | 0, (c ^ a) | 0, (d ^ a) | 0];
}
