/** XState's exported pure functions, on a snapshot restored from its own JSON. */
import { createActor, initialTransition, transition, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate';
import type { Json } from '../../../src/records.ts';
import { netOf, type Observed, type Op } from './observed.ts';
import { stateOf, type PersistedJson } from './persisted.ts';

interface Reference {
  id: string;
}

/** The observed macrostep and what to restore from for the next one. */
export interface ExportedStep {
  observed: Observed;
  snapshot: AnyMachineSnapshot;
  /** Before collapsing. */
  ops: Op[];
  /** Children that started and stopped within the macrostep. */
  flashed: number;
}

export function exportedInitial(machine: AnyStateMachine): ExportedStep {
  const [snapshot, actions] = initialTransition(machine) as [AnyMachineSnapshot, ActionLike[]];
  if (snapshot.status === 'error') throw snapshot.error;
  return observe(machine, null, snapshot, actions);
}

export function exportedStep(machine: AnyStateMachine, json: PersistedJson, event: { type: string }): ExportedStep {
  const before = createActor(machine, { snapshot: structuredClone(json) as never }).getSnapshot() as AnyMachineSnapshot;
  const [snapshot, actions] = transition(machine, before, event) as [AnyMachineSnapshot, ActionLike[]];
  return observe(machine, before, snapshot, actions);
}

// XState types the parameters of its own actions as unknown.
// oxlint-disable-next-line typescript/no-explicit-any
type ActionLike = { type: string; params: any; info: { self: Reference } };

function observe(
  machine: AnyStateMachine,
  before: AnyMachineSnapshot | null,
  snapshot: AnyMachineSnapshot,
  actions: ActionLike[],
): ExportedStep {
  const childOf = ({ type, params }: ActionLike): unknown =>
    type === 'xstate.spawnChild' ? params.actorRef : type === 'xstate.stopChild' ? params : params?.to;
  const ofType = (type: string): Set<unknown> => new Set(actions.filter((action) => action.type === type).map(childOf));
  const started = ofType('xstate.spawnChild');
  const stopped = ofType('xstate.stopChild');
  const kept = new Set<unknown>(Object.values(snapshot.children));
  const isLost = (child: unknown): boolean => started.has(child) && (stopped.has(child) || !kept.has(child));
  const lost = new Set<Op>();
  const ops = actions.flatMap((action) => {
    const made = toOps(action);
    if (isLost(childOf(action))) for (const op of made) lost.add(op);
    return made;
  });
  const forgotten = (Object.values(before?.children ?? {}) as Reference[]).filter(
    (child) => !kept.has(child) && !stopped.has(child),
  );
  return {
    snapshot,
    flashed: [...started].filter((child) => stopped.has(child)).length,
    ops,
    observed: {
      threw: false,
      state: stateOf(machine, snapshot),
      net: netOf(
        ops,
        lost,
        forgotten.map(({ id }) => id),
        before?._nodes.map(({ id }) => id) ?? [],
      ),
    },
  };
}

function toOps({ type, params, info }: ActionLike): Op[] {
  const to = (target: Reference): string => (target === info.self ? 'self' : target.id);
  switch (type) {
    case 'xstate.spawnChild':
      return [{ op: 'start', id: params.actorRef.id, src: params.src, input: params.input ?? null }];
    case 'xstate.stopChild':
      return params === undefined ? [] : [{ op: 'stop', id: params.id }];
    case 'xstate.raise':
      if (params.delay === undefined) return [];
      return [{ op: 'arm', id: params.id ?? null, delay: params.delay, event: params.event, to: 'self' }];
    case 'xstate.cancel':
      return [{ op: 'cancel', id: params.sendId }];
    case 'xstate.sendTo':
      if (params.delay === undefined) return [{ op: 'send', to: to(params.to), event: params.event }];
      return [{ op: 'arm', id: params.id ?? null, delay: params.delay, event: params.event, to: to(params.to) }];
    case 'xstate.emit':
      return [{ op: 'emit', event: params.event }];
    case 'xstate.log':
      return [{ op: 'log', label: params.label ?? null, value: params.value as Json }];
    default:
      throw new TypeError(`the reference does not know ${type}`);
  }
}
