/** The actors that are machines. */
import type { AnyStateMachine } from 'xstate';

/** Machines used as actors, by the name they have in the chart. */
export function machinesUsed(machine: AnyStateMachine): Record<string, AnyStateMachine> {
  const used = Object.create(null) as Record<string, AnyStateMachine>;
  for (const [name, logic] of Object.entries(machine.implementations.actors as Record<string, unknown>)) {
    if (isMachine(logic)) used[name] = logic;
  }
  return used;
}

/** Names, in the chart, of the actors that are machines. */
export function childMachines(machine: AnyStateMachine): string[] {
  return Object.keys(machinesUsed(machine));
}

export function isMachine(logic: unknown): logic is AnyStateMachine {
  return typeof logic === 'object' && logic !== null && '__xstatenode' in logic;
}
