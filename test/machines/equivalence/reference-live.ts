/** A running XState actor, restored from its own JSON for each event; its children are inert, its clock never ticks. */
import {
  createActor,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
} from 'xstate';
import type { AnyNode } from '../../../src/machines/nodes.ts';
import type { Json } from '../../../src/records.ts';
import { netOf, type Observed, type Op } from './observed.ts';
import { stateOf, type PersistedJson } from './persisted.ts';

export interface LiveStep {
  observed: Observed;
  snapshot: AnyMachineSnapshot;
  /** The microsteps XState took, for counting features. */
  microsteps: Microstep[];
  /** A child was started under the id of a live one: when that one stops is then our rule, not XState's. */
  replaced: boolean;
}

export interface Microstep {
  event: { type: string };
  /** XState lost a parent, a region, or all but one child of a compound state. */
  impossible: boolean;
  transitions: {
    eventType: string;
    reenter: boolean;
    source: { id: string };
    target?: { type: string; id: string }[];
  }[];
}

interface Recording {
  on: boolean;
  ops: Op[];
  /** Whom each start and send is about. */
  targets: Map<Op, unknown>;
  /** Actors that run: XState skips the start of a child that the same macrostep stops, but sends to it all the same. */
  running: Set<unknown>;
  /** Those that ran before the macrostep. */
  before: Set<AnyActorRef>;
  stopped: Set<unknown>;
  /** States that were active before it. */
  active: string[];
  /** The actor and its parent. */
  others: unknown[];
  microsteps: Microstep[];
}

type Event = { type: string; [key: string]: unknown };
// Members of the actor and its system that XState does not type.
// oxlint-disable-next-line typescript/no-explicit-any
type Internals = any;

/** Starts the machine, or restores it and sends one event; then stops recording. */
export function liveStep(source: AnyStateMachine, json: PersistedJson | null, event: Event | null): LiveStep {
  const recording: Recording = {
    on: json === null,
    ops: [],
    targets: new Map(),
    running: new Set(),
    before: new Set(),
    stopped: new Set(),
    others: [],
    active: [],
    microsteps: [],
  };
  const { machine, current } = recordable(source);
  current.recording = recording;
  const parent = createActor(idleLogic(), {
    logger: (...args: unknown[]) => {
      if (!recording.on) return;
      const [label, value] = args.length > 1 ? args : [null, args[0]];
      recording.ops.push({ op: 'log', label: label as string | null, value: value as Json });
    },
    inspect: (inspected) => {
      if (!recording.on || inspected.type !== '@xstate.microstep') return;
      recording.microsteps.push({
        event: inspected.event,
        transitions: inspected._transitions as Internals,
        impossible: isImpossible((inspected.snapshot as AnyMachineSnapshot)._nodes as AnyNode[]),
      });
    },
  }).start();
  const actor = createActor(machine, {
    id: 'self',
    parent,
    ...(json === null ? {} : { snapshot: structuredClone(json) as never }),
  });
  actor.subscribe({ error() {} });
  intercept(actor, parent, recording);
  actor.on('*' as never, (emitted: unknown) => {
    if (recording.on) recording.ops.push({ op: 'emit', event: emitted as Json });
  });
  const restored = json === null ? [] : Object.values((actor.getSnapshot() as AnyMachineSnapshot).children);
  recording.before = new Set(restored as AnyActorRef[]);
  recording.active = json === null ? [] : (actor.getSnapshot() as AnyMachineSnapshot)._nodes.map(({ id }) => id);
  recording.running = new Set<unknown>([actor, parent, ...restored]);
  recording.others = [actor, parent];
  actor.start();
  if (event !== null) {
    recording.on = true;
    (actor as Internals)._send(event);
  }
  const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
  const threw =
    snapshot.status === 'error' &&
    !(event?.type.startsWith('xstate.error.') === true && snapshot.error === event['error']);
  const { lost, forgotten } = findLost(recording, snapshot);
  return {
    snapshot,
    microsteps: recording.microsteps,
    replaced: forgotten.length > 0 || [...lost].some(({ op }) => op === 'start'),
    observed: { threw, state: stateOf(source, snapshot), net: netOf(recording.ops, lost, forgotten, recording.active) },
  };
}

interface Current {
  recording: Recording;
}

const recordables = new WeakMap<AnyStateMachine, { machine: AnyStateMachine; current: Current }>();

/** The machine with children that write into the current recording. Made once: it costs more than a step. */
function recordable(source: AnyStateMachine): { machine: AnyStateMachine; current: Current } {
  const known = recordables.get(source);
  if (known !== undefined) return known;
  const current = {} as Current;
  const made = { machine: source.provide({ actors: { job: recordingLogic(current) } } as never), current };
  recordables.set(source, made);
  return made;
}

/** Ops of children that never ran or were forgotten, and the ids of those from before that were. */
function findLost(recording: Recording, { children }: AnyMachineSnapshot): { lost: Set<Op>; forgotten: string[] } {
  const { ops, targets, running, before, stopped, others } = recording;
  const kept = new Set<unknown>([...others, ...before, ...Object.values(children)]);
  const isLost = (child: unknown): boolean => !running.has(child) || !kept.has(child);
  const left = [...before].filter((child) => !Object.values(children).includes(child) && !stopped.has(child));
  return {
    lost: new Set(ops.filter((op) => targets.has(op) && isLost(targets.get(op)))),
    forgotten: left.map(({ id }) => id),
  };
}

function intercept(actor: AnyActorRef, parent: AnyActorRef, recording: Recording): void {
  const system = actor.system as Internals;
  const name = (target: AnyActorRef): string => (target === actor ? 'self' : target === parent ? 'parent' : target.id);
  const record = (op: Op, target: unknown): void => {
    recording.ops.push(op);
    recording.targets.set(op, target);
  };
  system.scheduler.schedule = (_from: unknown, target: AnyActorRef, event: Json, delay: number, id?: string) => {
    if (recording.on) record({ op: 'arm', id: id ?? null, delay, event, to: name(target) }, target);
  };
  system.scheduler.cancel = (_from: unknown, id: string) => {
    if (recording.on) recording.ops.push({ op: 'cancel', id });
  };
  system.scheduler.cancelAll = () => {};
  system._relay = (from: unknown, target: AnyActorRef, event: { type: string }) => {
    const ended = target === parent && /^xstate\.(?:done|error)\.actor\./.test(event.type);
    if (recording.on && from === actor && !ended)
      record({ op: 'send', to: name(target), event: event as Json }, target);
  };
}

function idleLogic(): AnyActorLogic {
  return {
    transition: (snapshot: unknown) => snapshot,
    getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
    getPersistedSnapshot: (snapshot: unknown) => snapshot,
  } as AnyActorLogic;
}

function recordingLogic(current: Current): AnyActorLogic {
  return {
    ...idleLogic(),
    getInitialSnapshot: (_scope: unknown, input: unknown) => ({
      status: 'active',
      output: undefined,
      error: undefined,
      input,
    }),
    start: (snapshot: { input?: Json }, scope: { id: string; self: { src: string } }) => {
      const { recording } = current;
      recording.running.add(scope.self);
      const op: Op = { op: 'start', id: scope.id, src: scope.self.src, input: snapshot.input ?? null };
      recording.targets.set(op, scope.self);
      if (recording.on) recording.ops.push(op);
    },
    transition: (snapshot: unknown, event: { type: string }, scope: { id: string; self: unknown }) => {
      const { recording } = current;
      if (!recording.on || event.type !== 'xstate.stop') return snapshot;
      recording.stopped.add(scope.self);
      recording.ops.push({ op: 'stop', id: scope.id });
      return snapshot;
    },
  } as unknown as AnyActorLogic;
}

function isImpossible(nodes: AnyNode[]): boolean {
  const isActive = (node: AnyNode): boolean => nodes.includes(node);
  return nodes.some((node) => {
    const children = Object.values(node.states) as AnyNode[];
    const active = children.filter(isActive).length;
    const expected = { compound: 1, parallel: children.filter(({ type }) => type !== 'history').length }[
      node.type as string
    ];
    return (node.parent !== undefined && !isActive(node.parent)) || active !== (expected ?? 0);
  });
}
