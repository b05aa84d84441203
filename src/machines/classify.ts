/** What the chart would say to an event, without taking it. */
import { getNextTransitions, type AnyEventObject, type AnyStateMachine } from 'xstate';
import { isPawlError, messageOf, PawlError } from '../errors.ts';
import type { Json } from '../records.ts';
import { runPure, type StepAt } from './determinism.ts';
import type { DurableMachine } from './durable-machine.ts';
import type { AnyNode } from './nodes.ts';
import type { LiveSnapshot } from './snapshot.ts';

/**
 * - `legal`: a transition with a target or actions is selected;
 * - `guard_rejected`: there is one for this type, and its guards said no;
 * - `forbidden`: the state refuses the type (`EVENT: undefined`);
 * - `unhandled`: no active state knows the type, or the run is final.
 */
export type Classification = 'legal' | 'forbidden' | 'guard_rejected' | 'unhandled';

type Transition = ReturnType<AnyStateMachine['getTransitionData']>[number];

/**
 * Classifies one event in one state. Guards that call `now()` or `random()` need `at`; give the one of the coming
 * macrostep to get the answer that its step will give. Throws STEP_THREW when a guard throws, IMPURE_MACHINE without `at`.
 */
export function classify(
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  event: { type: string; [key: string]: Json },
  at: StepAt | null = null,
): Classification {
  if (snapshot.status !== 'active' || event.type === '*') return 'unhandled';
  const outcome = runPure(at, () => machine.prepared.getTransitionData(snapshot, event as AnyEventObject));
  if (outcome.asked) {
    throw new PawlError(
      'IMPURE_MACHINE',
      `A guard of machine '${machine.id}' for '${event.type}' asks for time or chance; classify needs to know the step.`,
    );
  }
  if (outcome.threw !== undefined) throw guardThrew(machine, event.type, outcome.threw.error);
  const selected = outcome.value ?? [];
  if (selected.some(isLive)) return 'legal';
  const guarded = getNextTransitions(snapshot).filter(
    (transition) => transition.guard !== undefined && isLive(transition) && matches(event.type, transition.eventType),
  );
  if (guarded.some((transition) => wasAskedBefore(transition, selected))) return 'guard_rejected';
  return selected.length > 0 ? 'forbidden' : 'unhandled';
}

function isLive(transition: Pick<Transition, 'target' | 'actions'>): boolean {
  return transition.target !== undefined || transition.actions.length > 0;
}

/** A refusing transition hides those of its ancestors, but not the guarded ones that were asked before it. */
function wasAskedBefore(guarded: Pick<Transition, 'source'>, refusing: readonly Transition[]): boolean {
  return refusing.every(({ source }) => !isAncestor(guarded.source as AnyNode, source as AnyNode));
}

function isAncestor(node: AnyNode, of: AnyNode): boolean {
  for (let parent = of.parent; parent !== undefined; parent = parent.parent) if (parent === node) return true;
  return false;
}

function matches(type: string, descriptor: string): boolean {
  if (descriptor === type || descriptor === '*') return true;
  if (!descriptor.endsWith('.*')) return false;
  const prefix = descriptor.slice(0, -2);
  return type === prefix || type.startsWith(`${prefix}.`);
}

/**
 * Which of the types the chart may take now, in the given order. The answer is exact for guards that do not read the
 * payload; those that do (or that ask for the time when `at` is null) count as possible.
 * Throws STEP_THREW when a guard throws without reading either.
 */
export function possibleEvents(
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  types: readonly string[],
  at: StepAt | null = null,
): string[] {
  if (snapshot.status !== 'active') return [];
  return types.filter((type) => isPossible(machine, snapshot, type, at));
}

function isPossible(machine: DurableMachine, snapshot: LiveSnapshot, type: string, at: StepAt | null): boolean {
  const { probe, wasRead } = createProbe(type);
  const outcome = runPure(at, () => machine.prepared.getTransitionData(snapshot, probe));
  if (wasRead() || outcome.asked) return true;
  if (outcome.threw !== undefined) throw guardThrew(machine, type, outcome.threw.error);
  return (outcome.value ?? []).some((transition) => isLive(transition) && transition.eventType === type);
}

/** An event that knows its type only; any other read is noted and throws. */
function createProbe(type: string): { probe: AnyEventObject; wasRead: () => boolean } {
  let read = false;
  const note = (): never => {
    read = true;
    throw new TypeError(`The payload of '${type}' is not known yet.`);
  };
  const probe = new Proxy<AnyEventObject>(
    { type },
    {
      get: (_target, key) => (key === 'type' ? type : note()),
      has: note,
      ownKeys: note,
      getOwnPropertyDescriptor: note,
    },
  );
  return { probe, wasRead: () => read };
}

function guardThrew(machine: DurableMachine, type: string, error: unknown): PawlError {
  if (isPawlError(error, 'IMPURE_MACHINE')) return error;
  return new PawlError('STEP_THREW', `A guard of machine '${machine.id}' for '${type}' threw: ${messageOf(error)}`, {
    cause: error,
    details: { event: type },
  });
}
