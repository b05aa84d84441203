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
  return observe(machine, snapshot, actions, []);
}

export function exportedStep(machine: AnyStateMachine, json: PersistedJson, event: { type: string }): ExportedStep {
  const before = createActor(machine, { snapshot: structuredClone(json) as never }).getSnapshot() as AnyMachineSnapshot;
  const [snapshot, actions] = transition(machine, before, event) as [AnyMachineSnapshot, ActionLike[]];
  return observe(machine, snapshot, actions, Object.keys(before.children));
}

// XState types the parameters of its own actions as unknown.
// oxlint-disable-next-line typescript/no-explicit-any
type ActionLike = { type: string; params: any; info: { self: Reference } };

function observe(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  actions: ActionLike[],
  live: string[],
): ExportedStep {
  const ofType = (type: string): ActionLike[] => actions.filter((action) => action.type === type);
  const started = new Set(ofType('xstate.spawnChild').map(({ params }) => params.actorRef as unknown));
  const flashed = new Set(
    ofType('xstate.stopChild').flatMap(({ params }) => (started.has(params) ? [params as unknown] : [])),
  );
  const undelivered = new Set<Op>();
  const ops = actions.flatMap((action) => {
    const made = toOps(action);
    const { to } = action.type === 'xstate.sendTo' ? action.params : { to: null };
    const replaced = started.has(to) && snapshot.children[to.id] !== to;
    if (flashed.has(to) || replaced) for (const op of made) undelivered.add(op);
    return made;
  });
  return {
    snapshot,
    flashed: flashed.size,
    ops,
    observed: { threw: false, state: stateOf(machine, snapshot), net: netOf(ops, live, undelivered) },
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
