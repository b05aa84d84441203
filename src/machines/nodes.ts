/** The state nodes of a machine, walked by public properties only. */
import type { StateNode } from 'xstate';

// XState's own name for "a state node of any machine" is spelled with `any`.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyNode = StateNode<any, any, any, any>;

/** The node and everything below it, in document order. */
export function allNodes(node: AnyNode): AnyNode[] {
  return [node, ...Object.values(node.states).flatMap((child) => allNodes(child as AnyNode))];
}
