/** A machine as a TypeScript file of its own that the Stately editor opens: one literal, names instead of bodies. */
import type { AnyStateMachine } from 'xstate';
import type { Json, JsonObject } from '../records.ts';
import { toStatelyJson } from './export.ts';
import { allNodes } from './nodes.ts';

/** Every name that the file has to provide a stub for. */
interface Names {
  actions: Set<string>;
  guards: Set<string>;
  actors: Set<string>;
  delays: Set<string>;
}

/**
 * Writes the machine as source text that imports XState only and type-checks under `strict`. `title` goes into its first
 * line. Guards, actions and actors are stubs: the file shows the chart, it does not run the agent.
 */
export function toMachineSource(machine: AnyStateMachine, title: string): string {
  const json = toStatelyJson(machine);
  const names: Names = { actions: new Set(), guards: new Set(), actors: new Set(), delays: new Set() };
  collectNames(json, names);
  const stubs = [
    section('actors', names.actors, () => 'fromPromise<unknown, unknown>(async () => ({}))'),
    section('actions', names.actions, () => '(_args: unknown, _params: unknown) => {}'),
    section('guards', names.guards, () => '(_args: unknown, _params: unknown) => true'),
    section('delays', names.delays, (name) => delayStub(machine, name)),
  ];
  const imports = names.actors.size > 0 ? 'fromPromise, setup' : 'setup';
  return [
    `// ${title.replaceAll(/\s+/g, ' ')}: written by pawl for the Stately editor. The chart only; guards, actions and actors are stubs.`,
    `import { ${imports} } from 'xstate';`,
    '',
    'export const machine = setup({',
    `  types: {} as { context: Record<string, unknown>; events: ${eventUnion(machine)} },`,
    ...stubs.flat(),
    `}).createMachine(${literal({ context: {}, ...json }, 0)});`,
    '',
  ].join('\n');
}

function collectNames(node: JsonObject, names: Names): void {
  for (const key of ['entry', 'exit']) collectActions(node[key], names);
  const transitions = [node['on'], node['after']].flatMap((map) => Object.values((map ?? {}) as object).flat());
  transitions.push(...list(node['always']), ...list(node['onDone']));
  for (const invoke of list(node['invoke']) as JsonObject[]) {
    names.actors.add(invoke['src'] as string);
    transitions.push(...list(invoke['onDone']), ...list(invoke['onError']));
  }
  for (const transition of transitions as JsonObject[]) {
    collectActions(transition['actions'], names);
    const guard = transition['guard'] as JsonObject | undefined;
    if (guard !== undefined) names.guards.add(guard['type'] as string);
  }
  for (const delay of Object.keys((node['after'] ?? {}) as object))
    if (Number.isNaN(Number(delay))) names.delays.add(delay);
  for (const child of Object.values((node['states'] ?? {}) as object)) collectNames(child as JsonObject, names);
}

function collectActions(actions: Json | undefined, names: Names): void {
  for (const action of list(actions) as JsonObject[]) names.actions.add(action['type'] as string);
}

function list(value: Json | undefined): Json[] {
  return (value ?? []) as Json[];
}

function section(name: string, names: ReadonlySet<string>, stub: (name: string) => string): string[] {
  if (names.size === 0) return [];
  return [`  ${name}: {`, ...[...names].toSorted().map((key) => `    ${property(key)}: ${stub(key)},`), '  },'];
}

function delayStub(machine: AnyStateMachine, name: string): string {
  const delay = (machine.implementations.delays as Record<string, unknown>)[name];
  return typeof delay === 'number' ? String(delay) : '1000';
}

function eventUnion(machine: AnyStateMachine): string {
  const descriptors = allNodes(machine.root).flatMap((node) => Object.keys((node.config as { on?: object }).on ?? {}));
  const types = new Set(descriptors.filter((type) => type !== '*').map((type) => type.replace(/\.\*$/, '.any')));
  if (types.size === 0) return '{ type: string }';
  return [...types]
    .toSorted()
    .map((type) => `{ type: ${quote(type)} }`)
    .join(' | ');
}

function literal(value: Json, depth: number): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null) return String(value);
  const inner = '  '.repeat(depth + 1);
  const parts = Array.isArray(value)
    ? value.map((item) => `${inner}${literal(item, depth + 1)},`)
    : Object.entries(value).map(([key, item]) => `${inner}${property(key)}: ${literal(item, depth + 1)},`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.join('\n')}\n${'  '.repeat(depth)}${close}`;
}

function property(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) && key !== '__proto__' ? key : quote(key);
}

function quote(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${escaped.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`;
}
