/** XState's own persisted JSON, and the observed state of an XState snapshot. */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { AnyNode } from '../../../src/machines/nodes.ts';
import type { Json } from '../../../src/records.ts';
import type { State } from './observed.ts';

export interface PersistedJson {
  value: Json;
  children: Record<string, { src: string; snapshot: Json }>;
  [field: string]: unknown;
}

/**
 * The persisted form after a trip through JSON text. JSON objects have no order, but XState takes the order of a parallel
 * state's regions from the order of keys: they are put into document order, as any reader of the record may do.
 */
export function persist(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): PersistedJson {
  const json = JSON.parse(JSON.stringify(machine.getPersistedSnapshot(snapshot))) as PersistedJson;
  return { ...json, value: inDocumentOrder(machine.root, json.value) };
}

/** What XState would restore if the child were gone: its invocation is settled. */
export function withoutChild(json: PersistedJson, id: string): PersistedJson {
  const { [id]: _settled, ...children } = json.children;
  return { ...json, children };
}

export function inDocumentOrder(node: AnyNode, value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const keys = Object.keys(node.states).filter((key) => Object.hasOwn(value, key));
  return Object.fromEntries(keys.map((key) => [key, inDocumentOrder(node.states[key] as AnyNode, value[key] as Json)]));
}

export function stateOf(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): State {
  const json = persist(machine, snapshot) as PersistedJson & { historyValue: Record<string, { id: string }[]> };
  const final = json['status'] !== 'active';
  return {
    value: json.value,
    context: json['context'] as Json,
    history: Object.fromEntries(
      Object.entries(json.historyValue)
        .filter(([, nodes]) => nodes.length > 0)
        .map(([id, nodes]) => [id, nodes.map((node) => node.id).toSorted()]),
    ),
    status: json['status'] as string,
    output: (json['output'] ?? null) as Json,
    error: json['status'] === 'error' ? ((snapshot.error ?? null) as Json) : null,
    tags: [...snapshot.tags].toSorted(),
    // XState lists the stopped children of a final machine still.
    children: final
      ? []
      : Object.entries(json.children)
          .map(([id, child]): [string, string] => [id, child.src])
          .toSorted(),
  };
}
