/**
 * The one module that knows what XState's actor logic expects of its surroundings: the scope of one macrostep, and the
 * inert stand-ins for children and parent. Members that begin with `_` are internal to XState and pinned by the
 * equivalence test.
 */
import type { AnyActorLogic, AnyActorRef, AnyActorScope } from 'xstate';
import { checkConfiguration } from './configuration.ts';
import type { AnyNode } from './nodes.ts';

/** An action as XState hands it over; `exec` is bound to the scope and is never called. */
export interface CollectedAction {
  type: string;
  // What it holds depends on the type; `collectEffects` reads each one.
  // oxlint-disable-next-line typescript/no-explicit-any
  params: any;
  exec?: unknown;
}

export interface StepScope {
  scope: AnyActorScope;
  self: AnyActorRef;
  parent: AnyActorRef;
  /** In the order in which XState resolved them. */
  actions: CollectedAction[];
}

const PARENT_ID = '#_parent';

/** The system of one macrostep: mints invocation ids, refuses everything else. */
class StepSystem {
  readonly sequence: number;
  readonly hasRegions: boolean;
  minted = 0;

  constructor(sequence: number, hasRegions: boolean) {
    this.sequence = sequence;
    this.hasRegions = hasRegions;
  }

  /** XState asks for a session id per started child: it becomes the invocation id, equal at every replay. */
  _bookId(): string {
    return `${this.sequence}.${this.minted++}`;
  }
  _register(sessionId: string): string {
    return sessionId;
  }
  _unregister(): void {}
  _set(systemId: string): void {
    throw new TypeError(`systemId '${systemId}' is not durable; send to a child by its id.`);
  }
  /** XState reports each microstep here: the only place where its result can be checked before the next one builds on it. */
  _sendInspectionEvent(inspected: { type: string; snapshot?: { _nodes: AnyNode[] } }): void {
    if (this.hasRegions && inspected.type === '@xstate.microstep' && inspected.snapshot !== undefined) {
      checkConfiguration(inspected.snapshot._nodes);
    }
  }
  _relay(): never {
    throw new TypeError('An event was sent from inside a step; use raise or sendTo as an action.');
  }
  get(): undefined {
    return undefined;
  }
  getAll(): object {
    return {};
  }
  inspect(): { unsubscribe(): void } {
    return { unsubscribe() {} };
  }
  getSnapshot(): object {
    return { _scheduledEvents: {} };
  }
  start(): void {}
  _logger(): void {}
  get _clock(): object {
    return { setTimeout: refuseTimer, clearTimeout: refuseTimer };
  }
  get scheduler(): object {
    return { schedule: refuseTimer, cancel: refuseTimer, cancelAll: refuseTimer };
  }
}

function refuseTimer(): never {
  throw new TypeError('A timer was set from inside a step; use after, or raise with a delay.');
}

/**
 * Makes the surroundings of one macrostep. Cheap, and never shared between runs or steps. With `hasRegions` each microstep
 * is checked to leave a whole configuration.
 */
export function createStepScope(runId: string, sequence: number, hasRegions: boolean): StepScope {
  const system = new StepSystem(sequence, hasRegions);
  const parent = createReference(PARENT_ID, PARENT_ID, PARENT_ID);
  const self = createReference(runId, runId, runId) as AnyActorRef & { _parent: AnyActorRef; system: unknown };
  self._parent = parent;
  self.system = system as never;
  const actions: CollectedAction[] = [];
  const scope = {
    self,
    id: runId,
    sessionId: runId,
    system: system as never,
    actionExecutor: (action: CollectedAction) => {
      actions.push(action);
    },
    defer: () => {
      throw new TypeError(
        'spawn() inside assign or context is not durable; use spawnChild(name, { id }) as an action.',
      );
    },
    logger: doNothing,
    emit: doNothing,
    stopChild: doNothing,
  } as unknown as AnyActorScope;
  return { scope, self, parent, actions };
}

/** The stand-in of a live child in `snapshot.children`; its session id is the invocation id. */
export function createChildStub(id: string, src: string, invocationId: string): AnyActorRef {
  return createReference(id, src, invocationId);
}

/** Logic for machines used as actors: the parent's step must run no code of the child. */
export const INERT_LOGIC: AnyActorLogic = {
  transition: (snapshot: unknown) => snapshot,
  getInitialSnapshot: (_scope: unknown, input: unknown) => ({
    status: 'active',
    output: undefined,
    error: undefined,
    input,
  }),
  getPersistedSnapshot: (snapshot: unknown) => snapshot,
} as AnyActorLogic;

function createReference(id: string, src: string, sessionId: string): AnyActorRef {
  const reference: Record<string, unknown> = {
    id,
    src,
    sessionId,
    systemId: undefined,
    _processingStatus: 0,
    send: refuseSend,
    getSnapshot: activeSnapshot,
    getPersistedSnapshot: activeSnapshot,
  };
  return reference as unknown as AnyActorRef;
}

function refuseSend(): never {
  throw new TypeError('An event was sent from inside a step; use raise or sendTo as an action.');
}

function activeSnapshot(): object {
  return { status: 'active', output: undefined, error: undefined };
}

function doNothing(): void {}
