/** Between the live snapshot of a run and its stored state. */
import type { AnyActorRef, AnyMachineSnapshot, StateValue } from 'xstate';
import { canonicalJson, sha256 } from '../json.ts';
import { messageOf, PawlError } from '../errors.ts';
import { diff, type Patch } from '../patch.ts';
import type { Fault, Invocation, Json, MachineState } from '../records.ts';
import { createChildStub, createStepScope } from './actor-scope.ts';
import type { DurableMachine } from './durable-machine.ts';
import type { AnyNode } from './nodes.ts';
import { sealJson } from './seal.ts';

/** The warm XState snapshot of one run; never shared between runs. Its context is frozen. */
export type LiveSnapshot = AnyMachineSnapshot;

/**
 * Brings what a step returned into the one form that a restore gives too: children as stubs, active states complete and in
 * document order. XState keeps the order in which states were entered, which changes the order of regions, and forgets
 * parts of what a history state brings back, until it restores its own JSON. Changes `after` in place unless it is `before`.
 * Throws a TypeError when two states are active that exclude each other.
 */
export function settleSnapshot(
  machine: DurableMachine,
  before: LiveSnapshot | null,
  after: LiveSnapshot,
): LiveSnapshot {
  if (after === before) return after;
  if (after.children !== before?.children) after.children = stubChildren(after.children);
  if (machine.hasRegions && after._nodes !== before?._nodes) {
    const value = wholeValue(machine.prepared.root, after.value as Json);
    after.value = value as StateValue;
    after._nodes = activeNodes(machine.prepared.root, value);
    after.tags = new Set(after._nodes.flatMap((node) => node.tags));
    after.historyValue = withoutEmpty(after.historyValue);
  }
  return after;
}

/** A history that remembers nothing would enter nothing; a restore drops it, and then the default is entered. */
function withoutEmpty(history: LiveSnapshot['historyValue']): LiveSnapshot['historyValue'] {
  const entries = Object.entries(history);
  const kept = entries.filter(([, nodes]) => nodes.length > 0);
  return kept.length === entries.length ? history : Object.fromEntries(kept);
}

/** In the order in which they were started: a final state stops them in that order. */
function stubChildren(children: Record<string, AnyActorRef | undefined>): Record<string, AnyActorRef> {
  const live = Object.entries(children).filter((entry): entry is [string, AnyActorRef] => entry[1] !== undefined);
  const started = live.toSorted(([, one], [, other]) => byInvocationId(one.sessionId, other.sessionId));
  return Object.fromEntries(
    started.map(([id, child]) => [
      id,
      'logic' in child ? createChildStub(id, child.src as string, child.sessionId) : child,
    ]),
  );
}

/** The state value with missing regions and children at their initial states, regions in document order. */
function wholeValue(node: AnyNode, value: Json | undefined): Json {
  const parts = typeof value === 'object' && value !== null ? (value as Record<string, Json>) : {};
  if (node.type === 'parallel') {
    const regions = Object.values(node.states).filter((region) => region.type !== 'history') as AnyNode[];
    return Object.fromEntries(regions.map((region) => [region.key, wholeValue(region, parts[region.key])]));
  }
  if (node.type !== 'compound') return {};
  const [key, second] = typeof value === 'string' ? [value] : Object.keys(parts);
  if (second !== undefined) {
    throw new TypeError(
      `XState left '${key}' and '${second}' of '${node.id}' active at once, as it does after a transition from inside a ` +
        `state to that state's own history; give it another target.`,
    );
  }
  const child = (key === undefined ? node.initial.target[0] : node.states[key]) as AnyNode;
  return child.type === 'compound' || child.type === 'parallel'
    ? { [child.key]: wholeValue(child, parts[child.key]) }
    : child.key;
}

/** The active nodes of a whole state value in document order, which is the order in which the value lists them. */
function activeNodes(node: AnyNode, value: Json): AnyNode[] {
  if (typeof value === 'string') return [node, node.states[value] as AnyNode];
  return [
    node,
    ...Object.entries(value as object).flatMap(([key, inner]) =>
      activeNodes(node.states[key] as AnyNode, inner as Json),
    ),
  ];
}

/** The invocation that is live under an id, or null. */
export function liveInvocation(snapshot: LiveSnapshot, id: string): string | null {
  return (snapshot.children as Record<string, AnyActorRef>)[id]?.sessionId ?? null;
}

/** The snapshot without the child of that id. */
export function withoutChild(snapshot: LiveSnapshot, id: string): LiveSnapshot {
  if (!Object.hasOwn(snapshot.children, id)) return snapshot;
  const { [id]: _settled, ...children } = snapshot.children as Record<string, AnyActorRef>;
  return { ...snapshot, children } as LiveSnapshot;
}

/** The stored form. Shares the snapshot's frozen context, so that a patch costs what changed. */
export function toMachineState(_machine: DurableMachine, snapshot: LiveSnapshot): MachineState {
  return {
    value: snapshot.value as Json,
    context: (snapshot.context ?? {}) as Json,
    history: historyIds(snapshot.historyValue as Record<string, AnyNode[]>),
    status: snapshot.status as MachineState['status'],
    output: (snapshot.output ?? null) as Json,
    error: snapshot.status === 'error' ? toFault(snapshot.error) : null,
    tags: [...snapshot.tags].toSorted(),
  };
}

function historyIds(history: Record<string, AnyNode[]>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(history).map(([id, nodes]) => [id, nodes.map((node) => node.id)]));
}

function toFault(error: unknown): Fault {
  if (typeof error === 'object' && error !== null && 'code' in error && 'message' in error) return error as Fault;
  return { code: 'STEP_THREW', message: messageOf(error) };
}

/**
 * The live snapshot of a stored state, its invocations standing in as children. Stepping it gives what stepping the
 * snapshot gave that was stored. Throws RECORD_UNREADABLE when a state, a history node or a child's logic is unknown.
 */
export function restoreSnapshot(
  machine: DurableMachine,
  state: MachineState,
  invocations: Record<string, Invocation>,
): LiveSnapshot {
  const snapshot = restoreConfiguration(machine, state);
  // Not through XState, which would revive look-alikes of actor references inside it.
  sealJson(undefined, state.context, 'context');
  snapshot.context = state.context;
  snapshot.children = restoreChildren(machine, invocations);
  return snapshot;
}

function restoreConfiguration(machine: DurableMachine, state: MachineState): LiveSnapshot {
  const historyValue = Object.fromEntries(
    Object.entries(state.history).map(([id, nodes]) => {
      historyNode(machine, id);
      return [id, nodes.map((node) => knownNode(machine, node))];
    }),
  );
  let snapshot: LiveSnapshot;
  try {
    snapshot = machine.prepared.restoreSnapshot(
      {
        value: state.value,
        context: {},
        status: state.status,
        output: state.output ?? undefined,
        error: state.error ?? undefined,
        historyValue,
        children: {},
      } as never,
      createStepScope('', 0).scope,
    );
    settleSnapshot(machine, null, snapshot);
  } catch (error) {
    throw unreadable(`the state ${canonicalJson(state.value)} is unknown to machine '${machine.id}'`, error);
  }
  if (canonicalJson(snapshot.value as Json) !== canonicalJson(state.value)) {
    throw unreadable(`the state ${canonicalJson(state.value)} is not a whole state of machine '${machine.id}'`);
  }
  return snapshot;
}

function historyNode(machine: DurableMachine, id: string): void {
  if (knownNode(machine, id).type !== 'history') throw unreadable(`'${id}' is not a history state of '${machine.id}'`);
}

function knownNode(machine: DurableMachine, id: string): AnyNode {
  const node = machine.nodes.get(id);
  if (node === undefined) throw unreadable(`the remembered state '${id}' is unknown to machine '${machine.id}'`);
  return node;
}

function restoreChildren(
  machine: DurableMachine,
  invocations: Record<string, Invocation>,
): Record<string, AnyActorRef> {
  const children: Record<string, AnyActorRef> = {};
  const started = Object.values(invocations).toSorted((one, other) =>
    byInvocationId(one.invocationId, other.invocationId),
  );
  for (const { id, src, invocationId } of started) {
    if (machine.logic[src] === undefined && machine.children[src] === undefined) {
      throw unreadable(`invocation ${invocationId} runs '${src}', which machine '${machine.id}' does not know`);
    }
    if (children[id] !== undefined) throw unreadable(`two live invocations have the id '${id}'`);
    children[id] = createChildStub(id, src, invocationId);
  }
  return children;
}

function byInvocationId(one: string, other: string): number {
  const [sequence = 0, index = 0] = one.split('.').map(Number);
  const [otherSequence = 0, otherIndex = 0] = other.split('.').map(Number);
  return sequence - otherSequence || index - otherIndex;
}

function unreadable(what: string, cause?: unknown): PawlError {
  return new PawlError('RECORD_UNREADABLE', `The stored record cannot be restored: ${what}.`, { cause });
}

type DigestInput = { machine: MachineState; invocations: Record<string, Invocation> };

/**
 * The next link of a run's snapshot digest: SHA-256 of the previous link and of what changed in value, context, history,
 * status, output and the identity of invocations. `before` is null at the first macrostep; `previous` is then ''.
 * The cost follows the change; what is shared and the order of keys do not matter.
 */
export function chainDigest(previous: string, before: DigestInput | null, after: DigestInput): string {
  const sameInvocations = before?.invocations === after.invocations;
  const change = diff(
    before === null ? undefined : digested(before, sameInvocations),
    digested(after, sameInvocations),
  );
  return sha256(`${previous}\n${canonicalJson(inOrder(change) as Json)}`);
}

function digested({ machine, invocations }: DigestInput, withoutInvocations: boolean): Json {
  const { value, context, history, status, output } = machine;
  const identities: Record<string, Json> = {};
  if (!withoutInvocations) {
    for (const { invocationId, id, src } of Object.values(invocations)) identities[invocationId] = { id, src };
  }
  return { value, context, history, status, output, invocations: identities };
}

/** Deleted keys come in the order of the object, which a stored copy need not keep. */
function inOrder(patch: Patch | null): Patch | null {
  if (patch === null || 'v' in patch) return patch;
  if ('n' in patch) return patch.i === undefined ? patch : { ...patch, i: inOrderAll(patch.i) };
  return {
    ...(patch.s === undefined ? {} : { s: inOrderAll(patch.s) }),
    ...(patch.d === undefined ? {} : { d: patch.d.toSorted() }),
  };
}

function inOrderAll(patches: { [key: string]: Patch }): { [key: string]: Patch } {
  return Object.fromEntries(Object.entries(patches).map(([key, patch]) => [key, inOrder(patch) as Patch]));
}
