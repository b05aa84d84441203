/** A machine made ready for durable steps. */
import type { AnyStateMachine } from 'xstate';
import type { z } from 'zod';
import { INERT_LOGIC } from './actor-scope.ts';
import { checkActions } from './checked-actions.ts';
import { machinesUsed } from './child-machines.ts';
import { brandOf, type LogicBrand } from './logic.ts';
import { allNodes, type AnyNode } from './nodes.ts';
import { assertDurable } from './registration.ts';
import { digestStructure } from './structure.ts';

const DEFAULT_MAX_ITERATIONS = 1_000;

export interface DurableMachine {
  readonly id: string;
  /** As its author wrote it. */
  readonly source: AnyStateMachine;
  /** What is stepped: children inert, delays and targets checked, microsteps limited. */
  readonly prepared: AnyStateMachine;
  /** Digest of the source's structure. */
  readonly structure: string;
  /** Microsteps per macrostep; more is an endless loop. */
  readonly maxIterations: number;
  /** Each changed context must parse. */
  readonly context: z.ZodType | null;
  /** Tools, decisions and approvals by the name they have in the chart. */
  readonly logic: Readonly<Record<string, LogicBrand>>;
  /** Machines used as actors, by the name they have in the chart. */
  readonly children: Readonly<Record<string, AnyStateMachine>>;
  /** By id, in document order. */
  readonly nodes: ReadonlyMap<string, AnyNode>;
  /** Has parallel or history states: what is active is then more than a chain of states. */
  readonly hasRegions: boolean;
}

export interface DurableMachineOptions {
  context?: z.ZodType | undefined;
  /** Taken when the machine itself sets no finite one; default 1,000. */
  maxIterations?: number | undefined;
}

/** Prepares a machine for steps. Throws MACHINE_NOT_DURABLE naming everything that cannot be resumed. */
export function createDurableMachine(source: AnyStateMachine, options: DurableMachineOptions = {}): DurableMachine {
  assertDurable(source);
  const children = machinesUsed(source);
  const inert = Object.fromEntries(Object.keys(children).map((name) => [name, INERT_LOGIC]));
  const prepared = source.provide({ actors: inert });
  const own = prepared.options.maxIterations;
  const maxIterations =
    own !== undefined && Number.isFinite(own) ? own : (options.maxIterations ?? DEFAULT_MAX_ITERATIONS);
  prepared.options = { ...prepared.options, maxIterations };
  checkActions(prepared);
  const nodes = new Map(allNodes(prepared.root).map((node) => [node.id, node]));
  return {
    id: source.id,
    source,
    prepared,
    structure: digestStructure(source),
    maxIterations,
    context: options.context ?? null,
    logic: brandedLogic(source),
    children,
    nodes,
    hasRegions: [...nodes.values()].some((node) => node.type === 'parallel' || node.type === 'history'),
  };
}

function brandedLogic(machine: AnyStateMachine): Record<string, LogicBrand> {
  const brands = Object.create(null) as Record<string, LogicBrand>;
  for (const [name, logic] of Object.entries(machine.implementations.actors as Record<string, unknown>)) {
    const brand = brandOf(logic);
    if (brand !== null) brands[name] = brand;
  }
  return brands;
}
