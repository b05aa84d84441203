/** Time and chance inside a step: fed from the macrostep itself, so that replaying it gives the same answer. */
import { PawlError } from '../errors.ts';
import { releaseTrap, setTrap } from './ambient-trap.ts';
import { createDraw } from './draw.ts';

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
  const trapped = trapping && outer === null;
  if (trapped) setTrap(violate);
  const outcome: Outcome<T> = { asked: false };
  try {
    outcome.value = code();
  } catch (error) {
    outcome.threw = { error };
  } finally {
    if (trapped) releaseTrap();
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
