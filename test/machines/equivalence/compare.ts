/**
 * Walks one random machine in four ways at once and says where they differ: our steps warm, our steps restored from JSON
 * after each event, XState's exported functions, and a live actor restored from its own JSON after each event.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AnyStateMachine } from 'xstate';
import { classify, possibleEvents, type Classification } from '../../../src/machines/classify.ts';
import { createDurableMachine, type DurableMachine } from '../../../src/machines/durable-machine.ts';
import type { Effect } from '../../../src/machines/effects.ts';
import { restoreSnapshot, toMachineState } from '../../../src/machines/snapshot.ts';
import * as steps from '../../../src/machines/step.ts';
import type { LiveSnapshot, Step, StepAt } from '../../../src/machines/step.ts';
import type { Fault, Invocation, Json } from '../../../src/records.ts';
import { isPawlError } from '../../../src/errors.ts';
import { buildMachine } from './build-machine.ts';
import { countCollapsed, countFeatures, type Features } from './features.ts';
import type { Net, State } from './observed.ts';
import { inDocumentOrder, persist, withoutChild, type PersistedJson } from './persisted.ts';
import { EVENTS, type MachineRecipe, type WalkStep } from './recipe.ts';
import { exportedInitial, exportedStep } from './reference-exported.ts';
import { liveStep, type LiveStep, type Microstep } from './reference-live.ts';

/** The functions under test; a deviant replaces some of them. */
export type StepFunctions = Pick<typeof steps, 'initialStep' | 'eventStep' | 'completionStep'>;

type Input =
  | { kind: 'event'; event: { type: string; [key: string]: Json } }
  | { kind: 'completion'; id: string; invocationId: string; completion: { output: Json } | { error: Fault } };

interface OurRun {
  warm: LiveSnapshot;
  invocations: Record<string, Invocation>;
  /** Armed timers by id, in the order in which they were armed. */
  timers: Map<string, { event: Json; to: string }>;
  sequence: number;
  /** Invocations that ended or were stopped. */
  gone: { id: string; invocationId: string }[];
}

export class Difference extends Error {}

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
    if (live !== null) throw new Difference(`initial: only ours threw: ${error.message}`);
    features.threw++;
    return null;
  }
  if (live === null) throw new Difference('initial: only the live actor threw');
  const ours: OurRun = { warm: step.snapshot, invocations: {}, timers: new Map(), sequence: 1, gone: [] };
  const net = carryOut(ours, step.effects, 1);
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
  const exported = hasParent ? null : attempt(() => exportedStep(source, json, event));
  if ('error' in ourStep) {
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

/** From text, as a record is: nothing is shared with the warm snapshot. */
function restore(machine: DurableMachine, ours: OurRun): LiveSnapshot {
  const text = JSON.stringify({ state: toMachineState(machine, ours.warm), invocations: ours.invocations });
  const { state, invocations } = JSON.parse(text) as {
    state: Parameters<typeof restoreSnapshot>[1];
    invocations: Record<string, Invocation>;
  };
  return restoreSnapshot(machine, state, Object.fromEntries(Object.entries(invocations).toReversed()));
}

function visible(machine: DurableMachine, result: Attempt<Step>): unknown {
  if ('error' in result) return result;
  const { snapshot, effects, applied } = result.step;
  return {
    applied,
    effects,
    state: toMachineState(machine, snapshot),
    children: childrenOf(snapshot),
    keys: JSON.stringify(snapshot.value),
  };
}

function childrenOf(snapshot: LiveSnapshot): [string, string, string][] {
  const children = Object.values(snapshot.children) as { id: string; src: string; sessionId: string }[];
  return children.map(({ id, src, sessionId }) => [id, src, sessionId]);
}

function ourState(machine: DurableMachine, ours: OurRun): State {
  const state = toMachineState(machine, ours.warm);
  if (JSON.stringify(state.value) !== JSON.stringify(inDocumentOrder(machine.source.root, state.value))) {
    throw new Difference('the state value is not in document order');
  }
  return {
    ...state,
    context: JSON.parse(JSON.stringify(state.context)) as Json,
    history: Object.fromEntries(Object.entries(state.history).map(([id, nodes]) => [id, nodes.toSorted()])),
    error: state.error as Json,
    children:
      state.status === 'active'
        ? childrenOf(ours.warm)
            .map(([id, src]): [string, string] => [id, src])
            .toSorted()
        : [],
  };
}

/** Does to our side what the runtime does with effects, and shows them with children by id. */
function carryOut(ours: OurRun, effects: readonly Effect[], sequence: number): Net {
  const net: Net = { stops: [], disarms: [], starts: [], arms: [], sends: [], emits: [], logs: [] };
  const names = new Map(Object.values(ours.invocations).map(({ invocationId, id }) => [invocationId, id]));
  for (const effect of effects) if (effect.kind === 'start') names.set(effect.invocationId, effect.id);
  const name = (to: string): string => names.get(to) ?? to;
  const order = effects.map(({ kind }) => ['stop', 'disarm', 'start', 'arm', 'send', 'emit', 'log'].indexOf(kind));
  if (order.some((rank, index) => rank < (order[index - 1] ?? 0)))
    throw new Difference(`effects out of order: ${order.join()}`);
  for (const effect of effects) {
    switch (effect.kind) {
      case 'stop': {
        const stopped = ours.invocations[effect.invocationId];
        if (stopped === undefined) throw new Difference(`stops ${effect.invocationId}, which is not live`);
        delete ours.invocations[effect.invocationId];
        ours.gone.push(stopped);
        net.stops.push(stopped.id);
        break;
      }
      case 'disarm':
        ours.timers.delete(effect.timerId);
        net.disarms.push(effect.timerId);
        break;
      case 'start': {
        const { invocationId, id, src, input } = effect;
        if (!invocationId.startsWith(`${sequence}.`))
          throw new Difference(`${invocationId} is not of macrostep ${sequence}`);
        ours.invocations[invocationId] = { invocationId, id, src, kind: 'tool', input, startedAtMs: 0 };
        net.starts.push({ id, src, input });
        break;
      }
      case 'arm': {
        const to = effect.to ?? 'self';
        ours.timers.delete(effect.timerId);
        ours.timers.set(effect.timerId, { event: effect.event, to });
        const unnamed = effect.timerId.startsWith(`${(effect.event as { type: string }).type}.${sequence}.`);
        net.arms.push({
          id: unnamed ? null : effect.timerId,
          delay: effect.delayMs,
          event: effect.event,
          to: name(to),
        });
        break;
      }
      case 'send':
        net.sends.push({ to: name(effect.to), event: effect.event });
        break;
      case 'emit':
        net.emits.push(effect.event);
        break;
      case 'log':
        net.logs.push({ label: effect.label, value: effect.value });
        break;
    }
  }
  return net;
}

function settle(ours: OurRun, input: Extract<Input, { kind: 'completion' }>): void {
  delete ours.invocations[input.invocationId];
  ours.gone.push(input);
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

function toInput(step: WalkStep, ours: OurRun): Input | null {
  switch (step.kind) {
    case 'event':
      return { kind: 'event', event: { type: EVENTS[step.event] as string, x: step.payload } };
    case 'timer': {
      const armed = [...ours.timers];
      const [id, timer] = armed[step.which % Math.max(armed.length, 1)] ?? [];
      if (id === undefined || timer === undefined) return null;
      ours.timers.delete(id);
      return timer.to === 'self' ? { kind: 'event', event: timer.event as { type: string } } : null;
    }
    case 'done':
    case 'fail': {
      const live = Object.values(ours.invocations);
      const invocation = live[step.which % Math.max(live.length, 1)];
      if (invocation === undefined) return null;
      const completion =
        step.kind === 'done' ? { output: { ok: step.which } } : { error: { code: 'TOOL_FAILED', message: 'no' } };
      return { kind: 'completion', id: invocation.id, invocationId: invocation.invocationId, completion };
    }
    case 'stale': {
      // One whose id is live again under another invocation: the case that a name cannot tell apart.
      const live = new Set(Object.values(ours.invocations).map(({ id }) => id));
      const old = ours.gone.filter(({ id }) => live.has(id));
      const stale = old[step.which % Math.max(old.length, 1)];
      if (stale === undefined) return null;
      return {
        kind: 'completion',
        id: stale.id,
        invocationId: stale.invocationId,
        completion: { output: { stale: true } },
      };
    }
  }
}

function isStale(input: Input, ours: OurRun): input is Extract<Input, { kind: 'completion' }> {
  return input.kind === 'completion' && ours.invocations[input.invocationId] === undefined;
}

function checkStale(
  machine: DurableMachine,
  ours: OurRun,
  input: Extract<Input, { kind: 'completion' }>,
  functions: StepFunctions,
  place: string,
): void {
  const at: StepAt = { runId: 'run', sequence: ours.sequence + 1, atMs: 0 };
  const step = run(functions, machine, ours.warm, input, at);
  if (step.applied || step.effects.length > 0 || step.snapshot !== ours.warm)
    throw new Difference(`${place}: a stale completion was taken`);
}

function completionEvent(input: Extract<Input, { kind: 'completion' }>): { type: string; [key: string]: Json } {
  const { id, completion } = input;
  return 'error' in completion
    ? { type: `xstate.error.actor.${id}`, error: completion.error as unknown as Json, actorId: id }
    : { type: `xstate.done.actor.${id}`, output: completion.output, actorId: id };
}

function describe(input: Input): string {
  return input.kind === 'event' ? JSON.stringify(input.event) : `${input.id} ${JSON.stringify(input.completion)}`;
}

function expectEqual(place: string, ours: unknown, theirs: unknown): void {
  if (isDeepStrictEqual(ours, theirs)) return;
  throw new Difference(`${place}\nours:   ${JSON.stringify(ours)}\ntheirs: ${JSON.stringify(theirs)}`);
}
