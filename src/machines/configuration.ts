/** Which states are active together: XState's sets of nodes, checked and put into one order. */
import type { Json } from '../records.ts';
import type { AnyNode } from './nodes.ts';

/**
 * Throws a TypeError when the active nodes are not a whole configuration: parents with their children, one child of a
 * compound state, all regions of a parallel one. XState gets that wrong for some transitions to history states, and what
 * it forgets is neither left nor entered properly: its invocations and timers would be lost.
 */
export function checkConfiguration(nodes: readonly AnyNode[]): void {
  const active = new Set(nodes);
  for (const node of nodes) {
    if (node.parent !== undefined && !active.has(node.parent))
      refuse(node.parent, 'is not active, but one of its states is');
    if (node.type === 'compound' || node.type === 'parallel') checkChildren(node, active);
  }
}

function checkChildren(node: AnyNode, active: ReadonlySet<AnyNode>): void {
  const children = Object.values(node.states) as AnyNode[];
  const count = children.filter((child) => active.has(child)).length;
  if (node.type === 'compound') {
    if (count !== 1) refuse(node, `has ${count} active states`);
  } else if (count !== children.filter((child) => child.type !== 'history').length) {
    refuse(node, 'does not have all its regions active');
  }
}

function refuse(node: AnyNode, what: string): never {
  throw new TypeError(
    `XState left an impossible state: '${node.id}' ${what}. It does so after some transitions to a history state that is ` +
      `active already; target a state instead.`,
  );
}

/** The value of a whole configuration with regions in document order, however they were entered. */
export function inDocumentOrder(node: AnyNode, value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  const parts = value as Record<string, Json>;
  const keys = Object.keys(node.states).filter((key) => Object.hasOwn(parts, key));
  return Object.fromEntries(keys.map((key) => [key, inDocumentOrder(node.states[key] as AnyNode, parts[key] as Json)]));
}
