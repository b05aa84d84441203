/** Actor logic that the runtime carries out itself: tools, decisions and approvals look like this to XState. */
import type { ActorLogic, ActorSystem, EventObject, Snapshot } from 'xstate';
import { PawlError } from '../errors.ts';

const LOGIC = Symbol.for('pawl.logic');

export type LogicKind = 'tool' | 'decide' | 'approval';

export interface LogicBrand<K extends LogicKind = LogicKind, D = unknown> {
  kind: K;
  /** Name of the tool, decision or approval; not the name it has in the chart. */
  name: string;
  definition: D;
}

// XState exports no name for "any actor system"; its own types use `any` here.
// oxlint-disable-next-line typescript/no-explicit-any
type AnySystem = ActorSystem<any>;

export type DurableLogic<K extends LogicKind, TInput, TOutput, D> = ActorLogic<
  Snapshot<TOutput> & { input: unknown },
  { type: string; [key: string]: unknown },
  TInput,
  AnySystem,
  EventObject
> & { readonly [LOGIC]: LogicBrand<K, D> };

/**
 * Makes actor logic for `setup({ actors })` that only the runtime can perform.
 * Under a bare `createActor` starting it throws TOOL_OUTSIDE_RUNTIME.
 */
export function createLogic<K extends LogicKind, TInput, TOutput, D>(
  brand: LogicBrand<K, D>,
): DurableLogic<K, TInput, TOutput, D> {
  return {
    transition: (snapshot) => snapshot,
    getInitialSnapshot: (_scope, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    getPersistedSnapshot: (snapshot) => snapshot,
    start() {
      throw new PawlError(
        'TOOL_OUTSIDE_RUNTIME',
        `${brand.kind} '${brand.name}' was started by XState itself; run the machine through createRuntime instead.`,
        { details: { kind: brand.kind, name: brand.name } },
      );
    },
    [LOGIC]: brand,
  };
}

/** The brand of logic made by `createLogic`, or null for any other value. */
export function brandOf(logic: unknown): LogicBrand | null {
  if (typeof logic !== 'object' || logic === null || !(LOGIC in logic)) return null;
  return (logic as { [LOGIC]: LogicBrand })[LOGIC];
}
