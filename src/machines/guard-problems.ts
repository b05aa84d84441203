/** What a guard must not be. */
import type { AnyStateMachine } from 'xstate';
import type { Problem } from './registration.ts';

type BuiltInGuard = { check: unknown; guards?: unknown[]; stateValue?: unknown };

/** Problems of a guard as the chart names it: a name, `{ type, params }`, a function, or `and`, `or`, `not`, `stateIn`. */
export function guardProblems(machine: AnyStateMachine, guard: unknown, place: string): Problem[] {
  if (typeof guard === 'function') return functionProblems(machine, guard, place);
  const name = typeof guard === 'string' ? guard : (guard as { type?: unknown } | null)?.type;
  if (typeof name !== 'string') return [{ place, message: 'has a guard that is neither a name nor a function.' }];
  if (Object.hasOwn(machine.implementations.guards, name)) return [];
  return [{ place, message: `asks guard '${name}', which setup({ guards }) does not provide.` }];
}

function functionProblems(machine: AnyStateMachine, guard: object, place: string): Problem[] {
  if (guard.constructor.name === 'AsyncFunction') {
    return [{ place, message: 'has an asynchronous guard, which is always true; ask a tool and guard on its answer.' }];
  }
  if (!('check' in guard)) return [];
  const builtIn = guard as BuiltInGuard;
  const nested = (builtIn.guards ?? []).flatMap((part) => guardProblems(machine, part, place));
  return [...nested, ...stateProblems(machine, builtIn.stateValue, place)];
}

function stateProblems(machine: AnyStateMachine, stateValue: unknown, place: string): Problem[] {
  if (typeof stateValue !== 'string' || !stateValue.startsWith('#')) return [];
  try {
    machine.getStateNodeById(stateValue);
    return [];
  } catch {
    return [{ place, message: `asks stateIn('${stateValue}'), which is no state of the machine.` }];
  }
}
