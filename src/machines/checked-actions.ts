/**
 * Makes delays and targets of a prepared machine answer for themselves. XState fires a delay that is not a number at once,
 * and sends to itself when a target function gives undefined; after the step neither can be told from the real thing.
 */
import { and, assign, raise, sendTo, type AnyStateMachine } from 'xstate';
import { allNodes, type AnyNode } from './nodes.ts';

/** An action of a state node: a name, `{ type, params }`, or a function with the properties of a built-in. */
type Action = unknown;
type Callable = ((...args: never[]) => unknown) & Record<string, unknown>;

/** Replaces, in place, what can go wrong silently in a machine that nobody else holds. */
export function checkActions(machine: AnyStateMachine): void {
  const named = machine.implementations.actions as Record<string, Action>;
  for (const name of Object.keys(named)) named[name] = checked(named[name]);
  const delays = machine.implementations.delays as Record<string, unknown>;
  for (const name of Object.keys(delays)) delays[name] = checkedDelay(delays[name], name);
  machine.implementations.delays = refuseUnknownNames(delays) as typeof machine.implementations.delays;
  for (const node of allNodes(machine.root)) checkNode(node);
}

function checkNode(node: AnyNode): void {
  node.entry = node.entry.map(checked) as typeof node.entry;
  node.exit = node.exit.map(checked) as typeof node.exit;
  for (const transition of [...node.transitions.values(), node.always ?? [], node.initial].flat()) {
    transition.actions = transition.actions.map(checked) as typeof transition.actions;
  }
  for (const transition of node.transitions.get('*') ?? []) {
    // A refusing '*' would otherwise swallow the completions and timers that an ancestor waits for.
    const own = transition.guard as Callable | undefined;
    transition.guard = (own === undefined ? isOutsideEvent : and([isOutsideEvent, own as never])) as never;
  }
}

function isOutsideEvent({ event }: { event: { type: string } }): boolean {
  return !event.type.startsWith('xstate.');
}

function checked(action: Action): Action {
  if (typeof action !== 'function' || !('resolve' in action)) return action;
  const builtIn = action as unknown as Callable;
  switch (builtIn['type']) {
    case 'xstate.raise':
      return withProperties(builtIn, { delay: checkedDelay(builtIn['delay']) });
    case 'xstate.sendTo':
      return withProperties(builtIn, { delay: checkedDelay(builtIn['delay']), to: checkedTarget(builtIn['to']) });
    case 'xstate.assign':
      return withProperties(builtIn, { assignment: checkedAssignment(builtIn['assignment']) });
    case 'xstate.enqueueActions':
      return withProperties(builtIn, { collect: checkedCollect(builtIn['collect'] as Callable) });
    default:
      return action;
  }
}

function withProperties(builtIn: Callable, changed: Record<string, unknown>): Action {
  return Object.assign(() => {}, builtIn, changed);
}

/** Whether a delay is a finite number of milliseconds, 0 or more. */
export function isDelay(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function checkedDelay(delay: unknown, name?: string): unknown {
  if (delay === undefined || typeof delay === 'string' || isDelay(delay)) return delay;
  const described = name === undefined ? 'A delay' : `Delay '${name}'`;
  return (...args: never[]) => {
    const value = typeof delay === 'function' ? (delay as Callable)(...args) : delay;
    if (isDelay(value)) return value;
    throw new TypeError(`${described} gave ${String(value)}; it must be a finite number of milliseconds, 0 or more.`);
  };
}

function refuseUnknownNames(delays: Record<string, unknown>): Record<string, unknown> {
  return new Proxy(delays, {
    get(target, name) {
      if (typeof name === 'symbol' || Object.hasOwn(target, name)) return Reflect.get(target, name) as unknown;
      throw new TypeError(`Delay '${name}' is not provided; XState would fire it at once.`);
    },
  });
}

function checkedTarget(to: unknown): unknown {
  if (typeof to !== 'function') return to;
  return (...args: never[]) => {
    const target = (to as Callable)(...args);
    if (target !== undefined && target !== null) return target;
    throw new TypeError(
      'A sendTo target is undefined; XState would send to the machine itself. Name the child by its id.',
    );
  };
}

function checkedAssignment(assignment: unknown): unknown {
  if (typeof assignment !== 'function') return assignment;
  return (...args: never[]) => {
    const update = (assignment as Callable)(...args);
    if (!isThenable(update)) return update;
    throw new TypeError('An assign is asynchronous, so its result would be lost; invoke a tool.');
  };
}

function checkedCollect(collect: Callable): unknown {
  return (args: { enqueue: Callable }, params: unknown) => {
    const inner = args.enqueue as unknown as (action: Action) => void;
    const enqueue = Object.assign((action: Action) => inner(checked(action)), args.enqueue, {
      assign: (assignment: never) => inner(checked(assign(assignment))),
      raise: (event: never, options: never) => inner(checked(raise(event, options))),
      sendTo: (to: never, event: never, options: never) => inner(checked(sendTo(to, event, options))),
    });
    const result = collect(...([{ ...args, enqueue }, params] as never[]));
    if (isThenable(result))
      throw new TypeError('enqueueActions got an asynchronous function; its actions would be lost.');
  };
}

function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value;
}
