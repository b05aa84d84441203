/**
 * A machine as strict JSON with every shorthand expanded, as Stately's machine schema wants it. Functions have no JSON:
 * inline guards and built-in actions come out as names that say what they do, and inputs made by functions are left out.
 */
import type { AnyStateMachine } from 'xstate';
import { findNonJson } from '../json.ts';
import type { Json, JsonObject } from '../records.ts';
import type { AnyNode } from './nodes.ts';

type Config = Record<string, unknown>;

/** What Stately's editor imports; `createMachine` of it has the same states and transitions. */
export function toStatelyJson(machine: AnyStateMachine): JsonObject {
  const { context } = machine.config as { context?: unknown };
  return compact({
    id: machine.id,
    version: machine.version,
    context: typeof context === 'object' ? jsonOrNothing(context) : undefined,
    ...nodeJson(machine.root),
  });
}

function nodeJson(node: AnyNode): JsonObject {
  const config = node.config as Config;
  const { type } = node;
  return compact({
    id: typeof config['id'] === 'string' ? config['id'] : undefined,
    description: config['description'],
    type: type === 'parallel' || type === 'history' || type === 'final' ? type : undefined,
    history: type === 'history' ? node.history || 'shallow' : undefined,
    target: type === 'history' ? config['target'] : undefined,
    initial: type === 'compound' ? initialKey(config['initial']) : undefined,
    tags: node.tags.length > 0 ? node.tags : undefined,
    meta: jsonOrNothing(config['meta']),
    output: jsonOrNothing(config['output']),
    entry: actionsJson(config['entry']),
    exit: actionsJson(config['exit']),
    invoke: node.invoke.length > 0 ? node.invoke.map((invoke) => invokeJson(invoke as unknown as Config)) : undefined,
    on: transitionMap(config['on']),
    after: transitionMap(config['after']),
    always: config['always'] === undefined ? undefined : transitionsJson(config['always']),
    onDone: config['onDone'] === undefined ? undefined : transitionsJson(config['onDone']),
    states: type === 'compound' || type === 'parallel' ? childrenJson(node) : undefined,
  });
}

function childrenJson(node: AnyNode): JsonObject {
  return Object.fromEntries(Object.entries(node.states).map(([key, child]) => [key, nodeJson(child as AnyNode)]));
}

function initialKey(initial: unknown): unknown {
  return typeof initial === 'object' && initial !== null ? (initial as Config)['target'] : initial;
}

function invokeJson(invoke: Config): JsonObject {
  return compact({
    id: invoke['id'],
    src: invoke['src'],
    input: jsonOrNothing(invoke['input']),
    onDone: invoke['onDone'] === undefined ? undefined : transitionsJson(invoke['onDone']),
    onError: invoke['onError'] === undefined ? undefined : transitionsJson(invoke['onError']),
  });
}

function transitionMap(transitions: unknown): JsonObject | undefined {
  if (typeof transitions !== 'object' || transitions === null) return undefined;
  return Object.fromEntries(Object.entries(transitions).map(([event, config]) => [event, transitionsJson(config)]));
}

function transitionsJson(config: unknown): JsonObject[] {
  return listOf(config).map((item) => {
    // `EVENT: undefined` refuses the event: a transition that does nothing.
    if (item === undefined) return {};
    if (typeof item === 'string') return { target: [item] };
    const transition = item as Config;
    const target = transition['target'];
    return compact({
      target: target === undefined || target === '' ? undefined : listOf(target),
      guard: transition['guard'] === undefined ? undefined : guardJson(transition['guard']),
      actions: actionsJson(transition['actions']),
      reenter: transition['reenter'],
      description: transition['description'],
      meta: jsonOrNothing(transition['meta']),
    });
  });
}

function guardJson(guard: unknown): JsonObject {
  if (typeof guard === 'string') return { type: guard };
  if (typeof guard === 'function') return { type: guardName(guard as unknown as Config) };
  const { type, params } = guard as Config;
  return compact({ type, params: jsonOrNothing(params) });
}

function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard;
  const { check, guards, stateValue, name, type } = guard as Config;
  if (check === undefined) return String(type ?? (name === '' || name === 'guard' ? 'inline guard' : name));
  if (stateValue !== undefined)
    return `stateIn(${typeof stateValue === 'string' ? stateValue : JSON.stringify(stateValue)})`;
  return `${String(name)}(${listOf(guards).map(guardName).join(', ')})`;
}

function actionsJson(actions: unknown): JsonObject[] | undefined {
  const list = actions === undefined ? [] : listOf(actions);
  return list.length === 0 ? undefined : list.map(actionJson);
}

function actionJson(action: unknown): JsonObject {
  if (typeof action === 'string') return { type: action };
  if (typeof action !== 'function') {
    const { type, params } = action as Config;
    return compact({ type, params: jsonOrNothing(params) });
  }
  const builtIn = action as unknown as Config;
  if (!('resolve' in action)) return { type: action.name === '' ? 'inline action' : action.name };
  const params = compact(builtInParams(builtIn));
  return compact({ type: builtIn['type'], params: Object.keys(params).length > 0 ? params : undefined });
}

function builtInParams(action: Config): Record<string, unknown> {
  switch (action['type']) {
    case 'xstate.assign':
      return {
        keys: typeof action['assignment'] === 'object' ? Object.keys(action['assignment'] as object) : undefined,
      };
    case 'xstate.raise':
    case 'xstate.emit':
      return pick(action, ['event', 'id', 'delay']);
    case 'xstate.sendTo':
      return { actorRef: jsonOrNothing(action['to']), ...pick(action, ['event', 'id', 'delay']) };
    case 'xstate.spawnChild':
      return pick(action, ['src', 'id', 'input']);
    case 'xstate.stopChild':
      return { actorRef: jsonOrNothing(action['actorRef']) };
    case 'xstate.cancel':
      return { sendId: jsonOrNothing(action['sendId']) };
    case 'xstate.log':
      return pick(action, ['value', 'label']);
    default:
      return {};
  }
}

function pick(from: Config, keys: string[]): Record<string, unknown> {
  return Object.fromEntries(keys.map((key) => [key, jsonOrNothing(from[key])]));
}

function jsonOrNothing(value: unknown): Json | undefined {
  return value === undefined || findNonJson(value) !== null ? undefined : (value as Json);
}

function compact(fields: Record<string, unknown>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}
