/** Our side of a walk: the warm snapshot and what the runtime keeps beside it. */
import { isDeepStrictEqual } from 'node:util';
import type { DurableMachine } from '../../../src/machines/durable-machine.ts';
import type { Effect } from '../../../src/machines/effects.ts';
import { chainDigest, restoreSnapshot, toMachineState } from '../../../src/machines/snapshot.ts';
import type { LiveSnapshot, Step } from '../../../src/machines/step.ts';
import type { Invocation, Json, MachineState } from '../../../src/records.ts';
import type { CompletionInput } from './inputs.ts';
import type { Net, State } from './observed.ts';
import { inDocumentOrder } from './persisted.ts';

export class Difference extends Error {}

export interface OurRun {
  warm: LiveSnapshot;
  invocations: Record<string, Invocation>;
  /** Armed timers by id, in the order in which they were armed. */
  timers: Map<string, { event: Json; to: string }>;
  sequence: number;
  /** Invocations that ended or were stopped. */
  gone: { id: string; invocationId: string }[];
  /** The chain so far, and the record that the last link was made of. */
  digest: string;
  record: { machine: MachineState; invocations: Record<string, Invocation> } | null;
}

export function createRun(snapshot: LiveSnapshot): OurRun {
  return { warm: snapshot, invocations: {}, timers: new Map(), sequence: 1, gone: [], digest: '', record: null };
}

/** Adds a link. The chain must not depend on what is shared, nor on the order of keys. */
export function chain(machine: DurableMachine, ours: OurRun): void {
  const record = { machine: toMachineState(machine, ours.warm), invocations: { ...ours.invocations } };
  const digest = chainDigest(ours.digest, ours.record, record);
  const again = chainDigest(ours.digest, reordered(ours.record), reordered(record));
  if (digest !== again) throw new Difference('the digest depends on sharing or on the order of keys');
  ours.digest = digest;
  ours.record = record;
}

function reordered<T>(value: T): T {
  if (Array.isArray(value)) return value.map(reordered) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reordered(item)]),
  ) as T;
}

/** What must hold of any run at rest, whatever XState says. */
export function checkInvariants(machine: DurableMachine, ours: OurRun): void {
  const live = Object.values(ours.invocations).map(({ id, invocationId }) => [id, invocationId]);
  const children = childrenOf(ours.warm).map(([id, , invocationId]) => [id, invocationId]);
  if (ours.warm.status !== 'active') return;
  if (!isDeepStrictEqual(live.toSorted(), children.toSorted()))
    throw new Difference('invocations are not the children');
  const active = new Set(ours.warm._nodes.map(({ id }) => id));
  for (const id of ours.timers.keys()) {
    const owner = /^xstate\.after\.[^.]+\.(.+)$/.exec(id)?.[1];
    if (owner !== undefined && !active.has(owner)) throw new Difference(`timer ${id} is armed, but its state is left`);
  }
  for (const node of machine.nodes.values()) {
    for (const { id } of node.invoke) {
      const isLive = live.some(([other]) => other === id);
      if (isLive && !active.has(node.id)) throw new Difference(`invocation ${id} is live, but its state is left`);
    }
  }
}

/** From text, as a record is: nothing is shared with the warm snapshot. */
export function restore(machine: DurableMachine, ours: OurRun): LiveSnapshot {
  const text = JSON.stringify({ state: toMachineState(machine, ours.warm), invocations: ours.invocations });
  const { state, invocations } = JSON.parse(text) as {
    state: Parameters<typeof restoreSnapshot>[1];
    invocations: Record<string, Invocation>;
  };
  return restoreSnapshot(machine, state, Object.fromEntries(Object.entries(invocations).toReversed()));
}

export function visible(machine: DurableMachine, result: { step: Step } | { error: string }): unknown {
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

export function childrenOf(snapshot: LiveSnapshot): [string, string, string][] {
  const children = Object.values(snapshot.children) as { id: string; src: string; sessionId: string }[];
  return children.map(({ id, src, sessionId }) => [id, src, sessionId]);
}

export function ourState(machine: DurableMachine, ours: OurRun): State {
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
export function carryOut(ours: OurRun, effects: readonly Effect[], sequence: number): Net {
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

export function settle(ours: OurRun, input: CompletionInput): void {
  delete ours.invocations[input.invocationId];
  ours.gone.push(input);
}
