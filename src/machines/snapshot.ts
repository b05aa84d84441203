/** Between the live snapshot of a run and its stored state. */
import { getStateNodes, type AnyActorRef, type AnyMachineSnapshot, type StateValue } from 'xstate';
import { canonicalJson, sha256 } from '../json.ts';
import { messageOf, PawlError } from '../errors.ts';
import { diff, type Patch } from '../patch.ts';
import type { Fault, Invocation, Json, MachineState } from '../records.ts';
import { createChildStub, createStepScope } from './actor-scope.ts';
import { inDocumentOrder } from './configuration.ts';
import type { DurableMachine } from './durable-machine.ts';
import type { AnyNode } from './nodes.ts';
import { sealJson } from './seal.ts';

/** The warm XState snapshot of one run; never shared between runs. Its context is frozen. */
export type LiveSnapshot = AnyMachineSnapshot;

/**
 * Brings what a step returned into the one form that a restore gives too: children as stubs, regions in document order.
 * XState keeps the order in which states were entered, and which transition wins depends on it, so that a run would go on
 * otherwise after a restart. Changes `after` in place unless it is `before`.
 */
export function settleSnapshot(
  machine: DurableMachine,
  before: LiveSnapshot | null,
  after: LiveSnapshot,
): LiveSnapshot {
  if (after === before) return after;
  if (after.children !== before?.children) after.children = stubChildren(after.children);
  if (machine.hasRegions && after._nodes !== before?._nodes) {
    after.value = inDocumentOrder(machine.prepared.root, after.value as Json) as StateValue;
    after._nodes = [...new Set(getStateNodes(machine.prepared.root, after.value))];
  }
  return after;
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
      createStepScope('', 0, false).scope,
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
