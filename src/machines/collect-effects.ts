/** From the actions that XState resolved in one macrostep to effects as data: collapsed and in their order. */
import type { AnyMachineSnapshot } from 'xstate';
import type { Json } from '../records.ts';
import type { CollectedAction, StepScope } from './actor-scope.ts';
import type { DurableMachine } from './durable-machine.ts';
import type { Effect } from './effects.ts';
import { sealJson } from './seal.ts';

interface Reference {
  id: string;
  sessionId: string;
}

type Kind<K extends Effect['kind']> = Extract<Effect, { kind: K }>;

/** The effects of one macrostep while they are gathered. */
interface Gathering {
  machine: DurableMachine;
  step: StepScope;
  sequence: number;
  before: AnyMachineSnapshot | null;
  /** Live children by id: those before the step, changed as it goes. */
  live: Map<string, string>;
  stops: Kind<'stop'>[];
  disarms: Map<string, Kind<'disarm'>>;
  starts: Map<string, Kind<'start'>>;
  arms: Map<string, Kind<'arm'>>;
  sends: Kind<'send'>[];
  emits: Kind<'emit'>[];
  logs: Kind<'log'>[];
  /** Delayed events without an id of their own, so far. */
  unnamed: number;
}

/**
 * Reads the actions of one macrostep. What starts and stops, or arms and cancels, within it vanishes. Starting a child
 * whose id is live stops that one first.
 * Throws a TypeError that names what cannot be carried out durably, or NOT_JSON.
 */
export function collectEffects(
  machine: DurableMachine,
  step: StepScope,
  before: AnyMachineSnapshot | null,
  sequence: number,
): Effect[] {
  if (step.actions.length === 0) return [];
  const gathering: Gathering = {
    machine,
    step,
    sequence,
    before,
    live: new Map(childrenOf(before).map((child) => [child.id, child.sessionId])),
    stops: [],
    disarms: new Map(),
    starts: new Map(),
    arms: new Map(),
    sends: [],
    emits: [],
    logs: [],
    unnamed: 0,
  };
  for (const action of step.actions) gather(gathering, action);
  const { stops, disarms, starts, arms, sends, emits, logs } = gathering;
  return [...stops, ...disarms.values(), ...starts.values(), ...arms.values(), ...sends, ...emits, ...logs];
}

function childrenOf(snapshot: AnyMachineSnapshot | null): Reference[] {
  return snapshot === null ? [] : (Object.values(snapshot.children) as Reference[]);
}

function gather(to: Gathering, action: CollectedAction): void {
  if (!isBuiltIn(action)) {
    throw new TypeError(
      `Action '${action.type}' has a body of its own, which would be repeated or lost; invoke a tool, or emit an event.`,
    );
  }
  switch (action.type) {
    case 'xstate.spawnChild':
      return gatherStart(to, action.params);
    case 'xstate.stopChild':
      return gatherStop(to, action.params);
    case 'xstate.raise':
      return gatherRaise(to, action.params);
    case 'xstate.cancel':
      return gatherCancel(to, action.params.sendId);
    case 'xstate.sendTo':
      return gatherSend(to, action.params);
    case 'xstate.emit':
      to.emits.push({ kind: 'emit', event: data(action.params.event, 'the emitted event') });
      return;
    case 'xstate.log':
      to.logs.push({
        kind: 'log',
        label: action.params.label ?? null,
        value: data(action.params.value, 'the logged value'),
      });
      return;
    default:
      throw new TypeError(`XState asks for '${action.type}', which is not known to this version of pawl.`);
  }
}

/** XState's own actions carry a bound function; it is the only mark that tells them from a custom action of such a name. */
function isBuiltIn(action: CollectedAction): boolean {
  return (
    typeof action.exec === 'function' && action.exec.name.startsWith('bound ') && action.type.startsWith('xstate.')
  );
}

function gatherStart(
  to: Gathering,
  params: { id: unknown; src: unknown; actorRef: Reference | undefined; input: unknown },
): void {
  const { src, actorRef } = params;
  if (typeof src !== 'string')
    throw new TypeError('A child is started from inline logic; register it in setup({ actors }).');
  if (actorRef === undefined) throw new TypeError(`Actor '${src}' is not provided in setup({ actors }).`);
  const { id, sessionId: invocationId } = actorRef;
  if (typeof id !== 'string' || id === invocationId) {
    throw new TypeError(`A child of '${src}' is started without an id; give spawnChild a string id.`);
  }
  // XState forgets the one that has the id: nothing could stop it or tell its completion from this one's.
  const replaced = to.live.get(id);
  if (replaced !== undefined) leave(to, id, replaced);
  const brand = to.machine.logic[src];
  if (brand === undefined && to.machine.children[src] === undefined)
    throw new TypeError(`Actor '${src}' is not durable logic.`);
  to.live.set(id, invocationId);
  const input = data(params.input, `the input of '${id}'`);
  to.starts.set(invocationId, { kind: 'start', invocationId, id, src, logic: brand?.kind ?? 'child', input });
}

function gatherStop(to: Gathering, child: Reference | undefined): void {
  // Undefined: not a live child any more, for instance one whose completion this very step reduces.
  if (child === undefined) return;
  if (to.live.get(child.id) === child.sessionId) leave(to, child.id, child.sessionId);
}

function leave(to: Gathering, id: string, invocationId: string): void {
  to.live.delete(id);
  if (to.starts.delete(invocationId)) {
    to.sends = to.sends.filter((send) => send.to !== invocationId);
    for (const [timerId, arm] of to.arms) if (arm.to === invocationId) to.arms.delete(timerId);
  } else {
    to.stops.push({ kind: 'stop', invocationId });
  }
}

function gatherRaise(to: Gathering, params: { event: { type: string }; id: string | undefined; delay: unknown }): void {
  // Without a delay it is already processed, in this very macrostep.
  if (params.delay === undefined) return;
  const isAfter = params.event.type.startsWith('xstate.after.');
  arm(to, {
    kind: 'arm',
    timerId: params.id ?? unnamedTimer(to, params.event),
    timer: isAfter ? 'after' : 'raise',
    delayMs: params.delay as number,
    event: data(params.event, 'the raised event'),
  });
}

function arm(to: Gathering, effect: Kind<'arm'>): void {
  if (typeof effect.delayMs !== 'number' || !Number.isFinite(effect.delayMs) || effect.delayMs < 0) {
    throw new TypeError(
      `The delay of '${effect.timerId}' is ${String(effect.delayMs)}; it must be a finite number of ms.`,
    );
  }
  to.arms.delete(effect.timerId);
  to.arms.set(effect.timerId, effect);
}

/** The step that arms it is part of the name: arming again adds a timer, as in XState, and does not replace one. */
function unnamedTimer(to: Gathering, event: { type: string }): string {
  return `${event.type}.${to.sequence}.${to.unnamed++}`;
}

function gatherCancel(to: Gathering, timerId: string): void {
  const armed = to.arms.get(timerId);
  to.arms.delete(timerId);
  // Armed and cancelled in this step; but another one of that id may be armed from before it, unless it is the `after` of a
  // state that was not active.
  const vanishes = armed?.timer === 'after' && !wasActive(to, timerId);
  if (!vanishes) to.disarms.set(timerId, { kind: 'disarm', timerId });
}

/** Whether the state of an `after` timer, `xstate.after.<delay>.<state id>`, was active before the step. */
function wasActive({ before }: Gathering, timerId: string): boolean {
  return before !== null && before._nodes.some((node) => timerId.endsWith(`.${node.id}`));
}

function gatherSend(
  to: Gathering,
  params: { to: Reference | undefined; event: { type: string }; id: string | undefined; delay: unknown },
): void {
  const target = targetOf(to, params.to);
  const event = data(params.event, 'the sent event');
  if (params.delay === undefined) {
    to.sends.push({ kind: 'send', to: target, event });
    return;
  }
  const timerId = params.id ?? unnamedTimer(to, params.event);
  arm(to, { kind: 'arm', timerId, timer: 'send', delayMs: params.delay as number, event, to: target });
}

function targetOf(to: Gathering, target: Reference | undefined): string {
  if (target === to.step.self) return 'self';
  if (target === to.step.parent) return 'parent';
  if (target === undefined || typeof target.sessionId !== 'string') {
    throw new TypeError(
      'An event is sent to a child that is not live at the end of the entry; send it after it is started.',
    );
  }
  return target.sessionId;
}

function data(value: unknown, name: string): Json {
  if (value === undefined) return null;
  sealJson(undefined, value, name);
  return value as Json;
}
