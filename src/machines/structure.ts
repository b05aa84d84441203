/**
 * The digest of what stored runs depend on in a machine: states, transitions, names, delays. Bodies of functions, names of
 * inline functions (bundlers change them), descriptions, metadata and tags are not in it.
 */
import type { AnyStateMachine } from 'xstate';
import { digestOf } from '../json.ts';
import type { Json } from '../records.ts';
import { isMachine } from './child-machines.ts';
import { brandOf } from './logic.ts';

const MAX_DEPTH = 200;
const LEFT_OUT = new Set(['description', 'meta', 'tags', 'types', 'schemas', 'version', 'options']);

/** SHA-256 over the structure of a machine as its author wrote it, 64 hex digits. */
export function digestStructure(machine: AnyStateMachine): string {
  const { actions, guards, actors, delays } = machine.implementations as unknown as Record<
    string,
    Record<string, unknown>
  >;
  return digestOf({
    id: machine.id,
    config: describeNode(machine.config),
    actions: describeAll(actions),
    guards: describeAll(guards),
    actors: describeAll(actors),
    delays: describeAll(delays),
  });
}

function describeNode(config: unknown): Json {
  const fields = Object.entries(config as Record<string, unknown>).filter(([key]) => !LEFT_OUT.has(key));
  return Object.fromEntries(
    fields.map(([key, value]) => [key, key === 'states' ? describeStates(config, value) : describe(value)]),
  );
}

/** The order of the regions of a parallel state is the order in which they take an event. */
function describeStates(parent: unknown, states: unknown): Json {
  const described = Object.entries(states as object).map(([key, state]): [string, Json] => [key, describeNode(state)]);
  return (parent as { type?: string }).type === 'parallel' ? described : Object.fromEntries(described);
}

function describeAll(values: Record<string, unknown> | undefined): Json {
  return Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, describe(value)]));
}

function describe(value: unknown, depth = 0): Json {
  // A cycle: refused when it is used; here it must only not hang.
  if (depth > MAX_DEPTH) return '(deep)';
  switch (typeof value) {
    case 'string':
      return value.toWellFormed();
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'function':
      return describeFunction(value as unknown as Record<string, unknown>, depth);
    case 'object':
      return describeObject(value, depth);
    default:
      return `(${typeof value})`;
  }
}

/** XState's built-in actions and guards are functions with their parts as properties. */
function describeFunction(builtIn: Record<string, unknown>, depth: number): Json {
  const parts = Object.entries(builtIn).filter(
    ([key]) => key !== 'resolve' && key !== 'retryResolve' && key !== 'execute',
  );
  if (parts.length === 0) return '(function)';
  return {
    function: Object.fromEntries(
      parts.filter(([key]) => key !== 'check').map(([key, part]) => [key, describe(part, depth + 1)]),
    ),
  };
}

function describeObject(value: object | null, depth: number): Json {
  if (value === null) return null;
  const brand = brandOf(value);
  if (brand !== null) return { kind: brand.kind, name: brand.name };
  if (isMachine(value)) return { kind: 'child', name: value.id };
  if (Array.isArray(value)) return value.map((item) => describe(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !LEFT_OUT.has(key))
      .map(([key, part]) => [key, describe(part, depth + 1)]),
  );
}
