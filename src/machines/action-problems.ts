/** What an action must not be. */
import type { AnyStateMachine } from 'xstate';
import { isDelay } from './checked-actions.ts';
import type { Problem } from './registration.ts';

type BuiltIn = ((...args: never[]) => unknown) & Record<string, unknown>;

const BUILT_INS = 'assign raise sendTo sendParent forwardTo emit log cancel spawnChild stopChild enqueueActions'
  .split(' ')
  .join(', ');

/** Problems of an action as the chart names it: a name, `{ type, params }`, or a function. */
export function actionProblems(machine: AnyStateMachine, action: unknown, place: string): Problem[] {
  if (typeof action === 'function') {
    if (!('resolve' in action)) return [custom(place)];
    return builtInProblems(machine, action as unknown as BuiltIn, place);
  }
  const name = typeof action === 'string' ? action : (action as { type?: unknown } | null)?.type;
  if (typeof name !== 'string') return [{ place, message: 'is neither a name nor a function.' }];
  // What a name stands for is checked where it is provided.
  if (Object.hasOwn(machine.implementations.actions, name)) return [];
  return [{ place, message: `names action '${name}', which setup({ actions }) does not provide.` }];
}

function custom(place: string): Problem {
  return {
    place,
    message: `has a body of its own, which a crash would repeat or lose; invoke a tool, or emit. Allowed: ${BUILT_INS}.`,
  };
}

function builtInProblems(machine: AnyStateMachine, action: BuiltIn, place: string): Problem[] {
  switch (action['type']) {
    case 'xstate.raise':
      return delayProblems(machine, action['delay'], place);
    case 'xstate.sendTo':
      return [...delayProblems(machine, action['delay'], place), ...targetProblems(action['to'], place)];
    case 'xstate.spawnChild':
      return spawnProblems(machine, action, place);
    case 'xstate.assign':
      return assignmentProblems(action['assignment'], place);
    case 'xstate.enqueueActions':
      return isAsync(action['collect'])
        ? [{ place, message: 'is asynchronous, so what it enqueues is lost; make it synchronous.' }]
        : [];
    default:
      return [];
  }
}

function delayProblems(machine: AnyStateMachine, delay: unknown, place: string): Problem[] {
  if (delay === undefined || typeof delay === 'function' || isDelay(delay)) return [];
  if (typeof delay !== 'string')
    return [{ place, message: `has the delay ${String(delay)}; give a finite number of ms, 0 or more.` }];
  if (Object.hasOwn(machine.implementations.delays, delay)) return [];
  return [
    {
      place,
      message: `names delay '${delay}', which setup({ delays }) does not provide; XState would fire it at once.`,
    },
  ];
}

function targetProblems(to: unknown, place: string): Problem[] {
  if (typeof to === 'string' || typeof to === 'function') return [];
  return [{ place, message: 'sends to an actor reference, which a restore does not have; name the child by its id.' }];
}

function spawnProblems(machine: AnyStateMachine, action: BuiltIn, place: string): Problem[] {
  const { src, id, systemId, syncSnapshot } = action as Record<string, unknown>;
  const problems: Problem[] = [];
  if (typeof src !== 'string') {
    problems.push({
      place,
      message:
        "spawns inline logic, which cannot be found again after a crash; name it in setup({ actors }) and write spawnChild('name', …).",
    });
  } else if (!Object.hasOwn(machine.implementations.actors, src)) {
    problems.push({ place, message: `spawns '${src}', which setup({ actors }) does not provide.` });
  }
  if (typeof id !== 'string' && typeof id !== 'function') {
    problems.push({
      place,
      message: "spawns without an id, so the next one would overwrite it; write spawnChild('name', { id: 'child' }).",
    });
  }
  if (systemId !== undefined)
    problems.push({ place, message: 'has a systemId, which does not survive a restore; send to the child by its id.' });
  if (syncSnapshot === true)
    problems.push({ place, message: 'has syncSnapshot; let the child send events to its parent instead.' });
  return problems;
}

function assignmentProblems(assignment: unknown, place: string): Problem[] {
  const parts = typeof assignment === 'function' ? [assignment] : Object.values(assignment as object);
  if (parts.some(isAsync))
    return [{ place, message: 'assigns asynchronously, so the result is lost; invoke a tool and assign its output.' }];
  if (!parts.some(callsSpawn)) return [];
  return [
    {
      place,
      message: "calls spawn() inside assign, whose start is lost; use spawnChild('name', { id }) as an action.",
    },
  ];
}

function isAsync(value: unknown): boolean {
  return typeof value === 'function' && value.constructor.name === 'AsyncFunction';
}

/** Whether a function visibly calls XState's spawn; what this misses is refused when it runs. */
export function callsSpawn(value: unknown): boolean {
  return typeof value === 'function' && /\bspawn\s*\(/.test(Function.prototype.toString.call(value));
}
