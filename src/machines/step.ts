/** One macrostep as a pure function: machine, snapshot and event in; snapshot and effects out. */
import type { AnyEventObject } from 'xstate';
import { isPawlError, messageOf, PawlError } from '../errors.ts';
import type { Fault, Json } from '../records.ts';
import { createStepScope, type StepScope } from './actor-scope.ts';
import { collectEffects } from './collect-effects.ts';
import { checkContext } from './context-check.ts';
import { runPure, type StepAt } from './determinism.ts';
import type { DurableMachine } from './durable-machine.ts';
import type { Effect } from './effects.ts';
import { sealJson } from './seal.ts';
import { liveInvocation, settleSnapshot, withoutChild, type LiveSnapshot } from './snapshot.ts';

export type { StepAt } from './determinism.ts';
export type { LiveSnapshot } from './snapshot.ts';

export interface Step {
  snapshot: LiveSnapshot;
  effects: Effect[];
  /** Whether the chart took the event: a selected transition has a target or actions. */
  applied: boolean;
}

/**
 * Enters the initial state. Throws STEP_THREW when user code throws or gives what is not strict JSON, and IMPURE_MACHINE
 * when it asks the surroundings for time or chance.
 */
export function initialStep(machine: DurableMachine, input: Json, at: StepAt): Step {
  const scope = createStepScope(at.runId, at.sequence, machine.hasRegions);
  return runStep(machine, null, 'xstate.init', at, scope, () => {
    const snapshot = machine.prepared.getInitialSnapshot(scope.scope, input);
    // XState swallows what the initial state throws into an error snapshot.
    if (snapshot.status === 'error') throw snapshot.error;
    return snapshot;
  });
}

/**
 * Takes an event from outside, from a timer or from a send. Not `applied` means the very same snapshot and no effects: no
 * transition with a target or actions is selected, the run is final, or the type is reserved for completions.
 * Throws as `initialStep`; `snapshot` is untouched then.
 */
export function eventStep(
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  event: { type: string; [key: string]: Json },
  at: StepAt,
): Step {
  const untaken: Step = { snapshot, effects: [], applied: false };
  if (snapshot.status !== 'active' || isReserved(event.type)) return untaken;
  if (selected(machine, snapshot, event, at) !== 'live') return untaken;
  return transit(machine, snapshot, event, at);
}

/**
 * Delivers the end of an invocation, which counts as settled before it is reduced: the child is gone from the snapshot.
 * `applied` says whether a transition took it. An error that nothing takes makes the machine's status `error`. One of an
 * invocation whose id is used by another one now is stale: the same snapshot, not applied.
 * Throws as `initialStep`; `snapshot` is untouched then.
 */
export function completionStep(
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  invocation: { invocationId: string; id: string },
  completion: { output: Json } | { error: Fault },
  at: StepAt,
): Step {
  const { id, invocationId } = invocation;
  const live = liveInvocation(snapshot, id);
  // A later entry uses the id: this completion is stale, and XState could not tell.
  if (live !== null && live !== invocationId) return { snapshot, effects: [], applied: false };
  const settled = withoutChild(snapshot, id);
  if (settled.status !== 'active') return { snapshot: settled, effects: [], applied: false };
  const event =
    'error' in completion
      ? { type: `xstate.error.actor.${id}`, error: completion.error, actorId: id }
      : { type: `xstate.done.actor.${id}`, output: completion.output, actorId: id };
  const selection = selected(machine, settled, event, at);
  if (selection === 'live') return transit(machine, settled, event, at);
  if (selection === 'inert' || !('error' in completion)) return { snapshot: settled, effects: [], applied: false };
  return { ...transit(machine, settled, event, at), applied: false };
}

/** Completions come by `completionStep` only; the others are XState's own. */
function isReserved(type: string): boolean {
  return type === '*' || (type.startsWith('xstate.') && !type.startsWith('xstate.after.'));
}

/** What the chart selects for an event: a transition that does something, only ones that refuse it, or none. */
function selected(
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  event: AnyEventObject,
  at: StepAt,
): 'live' | 'inert' | 'none' {
  const outcome = runPure(at, () => machine.prepared.getTransitionData(snapshot, event));
  if (outcome.threw !== undefined) throw stepThrew(machine, event.type, at, outcome.threw.error);
  const transitions = outcome.value ?? [];
  if (transitions.length === 0) return 'none';
  return transitions.some((transition) => transition.target !== undefined || transition.actions.length > 0)
    ? 'live'
    : 'inert';
}

function transit(machine: DurableMachine, before: LiveSnapshot, event: AnyEventObject, at: StepAt): Step {
  const scope = createStepScope(at.runId, at.sequence, machine.hasRegions);
  return runStep(machine, before, event.type, at, scope, () => machine.prepared.transition(before, event, scope.scope));
}

function runStep(
  machine: DurableMachine,
  before: LiveSnapshot | null,
  type: string,
  at: StepAt,
  scope: StepScope,
  transition: () => LiveSnapshot,
): Step {
  const outcome = runPure(at, transition);
  try {
    if (outcome.threw !== undefined) throw outcome.threw.error;
    const after = outcome.value as LiveSnapshot;
    const effects = collectEffects(machine, scope, before, at.sequence);
    if (after !== before) sealSnapshot(machine, before, after);
    return { snapshot: settleSnapshot(machine, before, after), effects, applied: true };
  } catch (error) {
    throw stepThrew(machine, type, at, error);
  }
}

function sealSnapshot(machine: DurableMachine, before: LiveSnapshot | null, after: LiveSnapshot): void {
  const contextBefore: unknown = before?.context;
  if (after.context !== contextBefore) {
    sealJson(contextBefore, after.context, 'context');
    if (machine.context !== null) checkContext(machine.context, contextBefore, after.context);
  }
  if (after.output !== undefined) sealJson(before?.output, after.output, 'output');
}

function stepThrew(machine: DurableMachine, type: string, at: StepAt, error: unknown): PawlError {
  if (isPawlError(error, 'IMPURE_MACHINE')) return error;
  const place = isPawlError(error, 'NOT_JSON') ? error.details : null;
  return new PawlError(
    'STEP_THREW',
    `Macrostep ${at.sequence} of run ${at.runId} (machine '${machine.id}', event '${type}') threw: ${messageOf(error)}`,
    { cause: error, details: { runId: at.runId, sequence: at.sequence, event: type, place } },
  );
}
