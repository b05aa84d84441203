/**
 * Walks one random machine in four ways at once and says where they differ: our steps warm, our steps restored from JSON
 * after each event, XState's exported functions, and a live actor restored from its own JSON after each event.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AnyStateMachine } from 'xstate';
import { classify, possibleEvents, type Classification } from '../../../src/machines/classify.ts';
import { createDurableMachine, type DurableMachine } from '../../../src/machines/durable-machine.ts';
import { toMachineState } from '../../../src/machines/snapshot.ts';
import * as steps from '../../../src/machines/step.ts';
import type { LiveSnapshot, Step, StepAt } from '../../../src/machines/step.ts';
import { isPawlError } from '../../../src/errors.ts';
import { buildMachine } from './build-machine.ts';
import { countCollapsed, countFeatures, type Features } from './features.ts';
import { completionEvent, describe, isStale, toInput, type CompletionInput, type Input } from './inputs.ts';
import type { Net, State } from './observed.ts';
import {
  carryOut,
  chain,
  checkInvariants,
  childrenOf,
  createRun,
  Difference,
  ourState,
  restore,
  settle,
  visible,
  type OurRun,
} from './our-run.ts';
import { persist, withoutChild, type PersistedJson } from './persisted.ts';
import type { MachineRecipe, WalkStep } from './recipe.ts';
import { exportedInitial, exportedStep } from './reference-exported.ts';
import { liveStep, type LiveStep, type Microstep } from './reference-live.ts';

/** The functions under test; a deviant replaces some of them. */
export type StepFunctions = Pick<typeof steps, 'initialStep' | 'eventStep' | 'completionStep'>;

/** Walks once. Throws a Difference at the first thing that is not the same; counts what was taken. */
export function compareWalk(
  recipe: MachineRecipe,
  walk: readonly WalkStep[],
  features: Features,
  functions: StepFunctions = steps,
): void {
  const { machine: source, hasParent } = buildMachine(recipe);
  const machine = createDurableMachine(source);
  const started = startAll(machine, source, hasParent, functions, features);
  if (started === null) return;
  const { ours } = started;
  let { json } = started;
  for (const [index, step] of walk.entries()) {
    if (ours.warm.status !== 'active') break;
    const input = toInput(step, ours);
    if (input === null) continue;
    const place = `step ${index} (${describe(input)})`;
    if (isStale(input, ours)) {
      checkStale(machine, ours, input, functions, place);
      features.staleRefused++;
      continue;
    }
    json = advance({ machine, source, hasParent, functions, features, ours, json, input, place });
  }
}

function startAll(
  machine: DurableMachine,
  source: AnyStateMachine,
  hasParent: boolean,
  functions: StepFunctions,
  features: Features,
): { ours: OurRun; json: PersistedJson } | null {
  const live = liveInitial(source);
  const at: StepAt = { runId: 'run', sequence: 1, atMs: 0 };
  let step: Step;
  try {
    step = functions.initialStep(machine, null, at);
  } catch (error) {
    if (!isPawlError(error, 'STEP_THREW')) throw error;
    const impossible = live?.microsteps.some((microstep) => microstep.impossible) ?? false;
    if (live !== null && !impossible) throw new Difference(`initial: only ours threw: ${error.message}`);
    features.threw++;
    return null;
  }
  if (live === null) throw new Difference('initial: only the live actor threw');
  const ours = createRun(step.snapshot);
  const net = carryOut(ours, step.effects, 1);
  chain(machine, ours);
  checkInvariants(machine, ours);
  // A live actor starts the children of its initial state in the order of their keys.
  expectEqual('initial, live', startsById({ state: ourState(machine, ours), net }), startsById(pick(live)));
  if (!hasParent)
    expectEqual('initial, exported', { state: ourState(machine, ours), net }, pick(exportedInitial(source)));
  countFeatures(features, live, null);
  return { ours, json: childrenInOrder(persist(source, live.snapshot), ours) };
}

function liveInitial(source: AnyStateMachine): LiveStep | null {
  const live = liveStep(source, null, null);
  return live.observed.threw ? null : live;
}

interface Advance {
  machine: DurableMachine;
  source: AnyStateMachine;
  hasParent: boolean;
  functions: StepFunctions;
  features: Features;
  ours: OurRun;
  json: PersistedJson;
  input: Input;
  place: string;
}

/** One macrostep everywhere; returns the JSON that the live actor is restored from next. */
function advance(walk: Advance): PersistedJson {
  const { machine, source, hasParent, functions, features, ours, input, place } = walk;
  const json = input.kind === 'completion' ? withoutChild(walk.json, input.id) : walk.json;
  const event = input.kind === 'event' ? input.event : completionEvent(input);
  const at: StepAt = { runId: 'run', sequence: ours.sequence + 1, atMs: 0 };
  const restored = restore(machine, ours);
  const verdict = checkVerdict(machine, restored, input, place);
  if (verdict === 'guard_rejected' || verdict === 'forbidden') features[verdict]++;
  const untouched = JSON.stringify(toMachineState(machine, ours.warm));
  const ourStep = attempt(() => run(functions, machine, ours.warm, input, at));
  const again = attempt(() => run(functions, machine, restored, input, at));
  expectEqual(`${place}: warm and restored`, visible(machine, ourStep), visible(machine, again));
  if (JSON.stringify(toMachineState(machine, ours.warm)) !== untouched)
    throw new Difference(`${place}: the previous snapshot changed`);
  const live = liveStep(source, json, event);
  if (!('error' in ourStep) && !ourStep.step.applied && live.microsteps.some(isEventless)) {
    // XState runs an always that was enabled and changed nothing again at each event, even one that nobody takes.
    features['always at rest']++;
    return walk.json;
  }
  if (!('error' in ourStep) && live.microsteps.some(({ impossible }) => impossible)) {
    throw new Difference(`${place}: ours took an impossible state`);
  }
  const exported = hasParent ? null : attempt(() => exportedStep(source, json, event));
  if ('error' in ourStep) {
    if (ourStep.error.includes('impossible state')) {
      if (!live.microsteps.some(({ impossible }) => impossible))
        throw new Difference(`${place}: only ours: ${ourStep.error}`);
      features['impossible state']++;
      return walk.json;
    }
    if (!live.observed.threw) throw new Difference(`${place}: only ours threw: ${ourStep.error}`);
    if (exported !== null && !('error' in exported))
      throw new Difference(`${place}: the exported function did not throw`);
    features.threw++;
    return walk.json;
  }
  if (live.observed.threw) throw new Difference(`${place}: only the live actor threw: ${String(live.snapshot.error)}`);
  const { step } = ourStep;
  if (step.applied !== (verdict === 'legal')) throw new Difference(`${place}: applied ${step.applied} but ${verdict}`);
  if (input.kind === 'event' && !step.applied && step.snapshot !== ours.warm) {
    throw new Difference(`${place}: not applied, but another snapshot`);
  }
  const before = ours.warm;
  ours.warm = step.snapshot;
  if (input.kind === 'completion') settle(ours, input);
  if (step.applied || input.kind === 'completion') ours.sequence++;
  const net = carryOut(ours, step.effects, ours.sequence);
  chain(machine, ours);
  checkInvariants(machine, ours);
  const inOrder = live.replaced ? stopsById : pick;
  expectEqual(`${place}: ours and live`, inOrder({ observed: { state: ourState(machine, ours), net } }), inOrder(live));
  if (live.replaced) features['child replaced']++;
  if (exported !== null) {
    if ('step' in exported) countCollapsed(features, exported.step);
    if ('error' in exported) throw new Difference(`${place}: only the exported function threw: ${exported.error}`);
    expectEqual(
      `${place}: ours and exported`,
      inOrder({ observed: { state: ourState(machine, ours), net } }),
      inOrder(exported.step),
    );
  }
  countFeatures(features, live, { before, step, input: event });
  return childrenInOrder(persist(source, live.snapshot), ours);
}

/** JSON objects have no order; XState stops children in that of their keys. Ours is the order in which they started. */
function childrenInOrder(json: PersistedJson, ours: OurRun): PersistedJson {
  const ids = childrenOf(ours.warm).map(([id]) => id);
  if (!isDeepStrictEqual(ids.toSorted(), Object.keys(json.children).toSorted())) return json;
  return {
    ...json,
    children: Object.fromEntries(ids.map((id) => [id, json.children[id] as PersistedJson['children'][string]])),
  };
}

function run(
  functions: StepFunctions,
  machine: DurableMachine,
  snapshot: LiveSnapshot,
  input: Input,
  at: StepAt,
): Step {
  if (input.kind === 'event') return functions.eventStep(machine, snapshot, input.event, at);
  return functions.completionStep(machine, snapshot, input, input.completion, at);
}

/** What `classify` says of the event; an event that is legal must also be possible without its payload. */
function checkVerdict(machine: DurableMachine, snapshot: LiveSnapshot, input: Input, place: string): Classification {
  const event = input.kind === 'event' ? input.event : completionEvent(input);
  const verdict = classify(machine, snapshot, event);
  const possible = possibleEvents(machine, snapshot, [event.type]).length > 0;
  if (verdict === 'legal' && !possible) throw new Difference(`${place}: legal, but not possible`);
  return verdict;
}

function isEventless({ transitions }: Microstep): boolean {
  return transitions.some(({ eventType }) => eventType === '');
}

type Attempt<T> = { step: T } | { error: string };

function attempt<T>(code: () => T): Attempt<T> {
  try {
    return { step: code() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

function startsById({ state, net }: { state: State; net: Net }): { state: State; net: Net } {
  return { state, net: { ...net, starts: net.starts.toSorted((one, other) => (one.id < other.id ? -1 : 1)) } };
}

function stopsById({ observed: { state, net } }: { observed: { state: State; net: Net } }): { state: State; net: Net } {
  return { state, net: { ...net, stops: net.stops.toSorted() } };
}

function pick({ observed: { state, net } }: { observed: { state: State; net: Net } }): { state: State; net: Net } {
  return { state, net };
}

function checkStale(
  machine: DurableMachine,
  ours: OurRun,
  input: CompletionInput,
  functions: StepFunctions,
  place: string,
): void {
  const at: StepAt = { runId: 'run', sequence: ours.sequence + 1, atMs: 0 };
  const step = run(functions, machine, ours.warm, input, at);
  if (step.applied || step.effects.length > 0 || step.snapshot !== ours.warm)
    throw new Difference(`${place}: a stale completion was taken`);
}

function expectEqual(place: string, ours: unknown, theirs: unknown): void {
  if (isDeepStrictEqual(ours, theirs)) return;
  throw new Difference(`${place}\nours:   ${JSON.stringify(ours)}\ntheirs: ${JSON.stringify(theirs)}`);
}
