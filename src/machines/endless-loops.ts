/** Loops of `always` transitions that nothing can end. */
import type { AnyStateMachine } from 'xstate';
import { allNodes, type AnyNode } from './nodes.ts';
import type { Problem } from './registration.ts';

/** Changes what XState compares, so that an unguarded `always` runs again. */
const CHANGING = new Set([
  'xstate.assign',
  'xstate.raise',
  'xstate.spawnChild',
  'xstate.stopChild',
  'xstate.enqueueActions',
]);

/**
 * Finds cycles of unguarded `always`, each reported once. Guarded ones, and those through parallel or history states,
 * are left to the step, which stops after the machine's number of microsteps.
 */
export function endlessLoops(machine: AnyStateMachine): Problem[] {
  const problems = new Map<string, Problem>();
  for (const node of allNodes(machine.root)) {
    if (node.type !== 'atomic') continue;
    const cycle = cycleFrom(node);
    if (cycle === null) continue;
    const place = cycle
      .map(({ id }) => id)
      .toSorted()
      .join(' → ');
    problems.set(place, {
      place,
      message: 'always runs without a guard and without an end; guard it, or make one of the states wait for an event.',
    });
  }
  return [...problems.values()];
}

function cycleFrom(start: AnyNode): AnyNode[] | null {
  const visited: AnyNode[] = [];
  let leaf: AnyNode | null = start;
  while (leaf !== null) {
    const seen = visited.indexOf(leaf);
    if (seen >= 0) return visited.slice(seen);
    visited.push(leaf);
    leaf = nextLeaf(leaf);
  }
  return null;
}

/** Where an unguarded `always` certainly leads from a leaf, or null. */
function nextLeaf(leaf: AnyNode): AnyNode | null {
  for (let node: AnyNode | undefined = leaf; node !== undefined; node = node.parent) {
    const [first] = node.always ?? [];
    if (first === undefined) continue;
    if (first.guard !== undefined) return null;
    const [target] = (first.target ?? []) as AnyNode[];
    if (target !== undefined) return descend(target);
    return first.actions.some((action) => changes(action)) ? leaf : null;
  }
  return null;
}

function descend(target: AnyNode): AnyNode | null {
  let node: AnyNode | undefined = target;
  while (node?.type === 'compound') node = node.initial.target[0] as AnyNode | undefined;
  return node?.type === 'atomic' ? node : null;
}

function changes(action: unknown): boolean {
  return typeof action === 'function' && 'type' in action && CHANGING.has(action.type as string);
}
