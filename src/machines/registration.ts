/** What a machine must not contain to be resumed after a crash, found before its first run. */
import { type AnyStateMachine } from 'xstate';
import { PawlError } from '../errors.ts';
import { actionProblems, callsSpawn } from './action-problems.ts';
import { endlessLoops } from './endless-loops.ts';
import { guardProblems } from './guard-problems.ts';
import { isMachine } from './child-machines.ts';
import { isDelay } from './checked-actions.ts';
import { brandOf } from './logic.ts';
import { allNodes, type AnyNode } from './nodes.ts';

export { childMachines } from './child-machines.ts';

/** Where in the chart, and what to write instead. */
export interface Problem {
  place: string;
  message: string;
}

/** Throws MACHINE_NOT_DURABLE naming every problem, each with its place and what to write instead. */
export function assertDurable(machine: AnyStateMachine): void {
  const problems = machineProblems(machine);
  if (problems.length === 0) return;
  const lines = problems.map(({ place, message }) => `- ${place}: ${message}`);
  throw new PawlError('MACHINE_NOT_DURABLE', `Machine '${machine.id}' cannot be resumed:\n${lines.join('\n')}`, {
    details: { machine: machine.id, problems: problems.map(({ place, message }) => ({ place, message })) },
  });
}

/** Everything about the machine that durable steps would lose, repeat or misread. */
export function machineProblems(machine: AnyStateMachine): Problem[] {
  const nodes = allNodes(machine.root);
  return [
    ...identityProblems(machine, nodes),
    ...implementationProblems(machine),
    ...nodes.flatMap((node) => nodeProblems(machine, node)),
    ...endlessLoops(machine),
  ];
}

/** Allowed, but worth a look: a completion that nobody takes stops the run. */
export function machineAdvice(machine: AnyStateMachine): Problem[] {
  return allNodes(machine.root).flatMap((node) =>
    node.invoke
      .filter((invoke) => !node.transitions.has(`xstate.error.actor.${invoke.id}`))
      .map((invoke) => ({
        place: `${node.id}, invoke '${invoke.id}'`,
        message: 'no onError: if no parent takes its failure either, the machine ends with status error.',
      })),
  );
}

function identityProblems(machine: AnyStateMachine, nodes: AnyNode[]): Problem[] {
  const problems: Problem[] = [];
  if (machine.id === '(machine)')
    problems.push({ place: 'the machine', message: "has no id; write createMachine({ id: 'name', … })." });
  if (callsSpawn((machine.config as { context?: unknown }).context)) {
    problems.push({
      place: `${machine.id}, context`,
      message: "calls spawn(), whose start is lost; use spawnChild('name', { id }) as an entry action.",
    });
  }
  for (const [id, places] of repeated(nodes, (node) => [node.id])) {
    problems.push({ place: places.join(' and '), message: `the state id '${id}' is used twice; give each its own.` });
  }
  for (const [id, places] of repeated(nodes, (node) => node.invoke.map((invoke) => invoke.id))) {
    problems.push({
      place: places.join(' and '),
      message: `the invoke id '${id}' is used twice, so one completion would end both; give each its own id.`,
    });
  }
  return problems;
}

function repeated(nodes: AnyNode[], idsOf: (node: AnyNode) => string[]): [string, string[]][] {
  const places = new Map<string, string[]>();
  for (const node of nodes) {
    for (const id of idsOf(node))
      places.set(id, [...(places.get(id) ?? []), [node.machine.id, ...node.path].join('.')]);
  }
  return [...places].filter(([, found]) => found.length > 1);
}

function implementationProblems(machine: AnyStateMachine): Problem[] {
  const { actors, actions, guards, delays } = machine.implementations as unknown as Record<
    string,
    Record<string, unknown>
  >;
  const problems: Problem[] = [];
  for (const [name, logic] of Object.entries(actors ?? {})) {
    if (brandOf(logic) !== null || isMachine(logic)) continue;
    problems.push({
      place: `actor '${name}'`,
      message:
        'is a promise, callback, observable or transition logic, which a crash loses; write it as tool(), decide(), approval() or a machine.',
    });
  }
  for (const [name, action] of Object.entries(actions ?? {}))
    problems.push(...actionProblems(machine, action, `action '${name}'`));
  for (const [name, guard] of Object.entries(guards ?? {}))
    problems.push(...guardProblems(machine, guard, `guard '${name}'`));
  for (const [name, delay] of Object.entries(delays ?? {})) {
    if (typeof delay === 'function' || isDelay(delay)) continue;
    problems.push({
      place: `delay '${name}'`,
      message: `is ${String(delay)}; give a finite number of milliseconds, 0 or more.`,
    });
  }
  return problems;
}

function nodeProblems(machine: AnyStateMachine, node: AnyNode): Problem[] {
  const own = (part: string): string => `${node.id}, ${part}`;
  const problems: Problem[] = [];
  // From the config: XState adds the timers of `after` to the actions of the node.
  for (const part of ['entry', 'exit'] as const) {
    const actions: unknown[] = [(node.config as Record<string, unknown>)[part] ?? []].flat();
    actions.forEach((action, index) =>
      problems.push(...actionProblems(machine, action, own(`${part} action ${index + 1}`))),
    );
  }
  if ((node.config as { route?: unknown }).route !== undefined) {
    problems.push({
      place: own('route'),
      message: 'lets any sender jump here from any state; write transitions instead.',
    });
  }
  problems.push(...invokeProblems(machine, node), ...delayProblems(machine, node));
  for (const [descriptor, transitions] of node.transitions) {
    problems.push(...descriptorProblems(node, descriptor, transitions));
    for (const transition of transitions) {
      problems.push(...transitionProblems(machine, transition, own(`on ${descriptor}`)));
      problems.push(...historyProblems(node, transition, own(`on ${descriptor}`)));
    }
  }
  for (const transition of node.always ?? []) {
    problems.push(...transitionProblems(machine, transition, own('always')));
    problems.push(...historyProblems(node, transition, own('always')));
  }
  if (node.type === 'compound') {
    problems.push(...transitionProblems(machine, node.initial, own('initial')));
  }
  return problems;
}

/**
 * A history remembers what was active when its parent was last left. From inside of the parent it does not mean what it
 * says, and XState may leave by one set of states and enter by another, forgetting some.
 */
function historyProblems(source: AnyNode, transition: { target?: unknown }, place: string): Problem[] {
  const targets = (transition.target ?? []) as AnyNode[];
  return targets
    .filter(({ type, parent }) => type === 'history' && isInside(source, parent))
    .map((target) => ({
      place,
      message: `goes to the history '${target.id}' from inside of '${target.parent?.id}', which has not been left; target a state, or move this one out of there.`,
    }));
}

function isInside(node: AnyNode, ancestor: AnyNode | undefined): boolean {
  for (let parent = node.parent; parent !== undefined; parent = parent.parent) if (parent === ancestor) return true;
  return false;
}

function transitionProblems(
  machine: AnyStateMachine,
  transition: { guard?: unknown; actions: readonly unknown[] },
  place: string,
): Problem[] {
  return [
    ...(transition.guard === undefined ? [] : guardProblems(machine, transition.guard, place)),
    ...transition.actions.flatMap((action, index) => actionProblems(machine, action, `${place}, action ${index + 1}`)),
  ];
}

function invokeProblems(machine: AnyStateMachine, node: AnyNode): Problem[] {
  return node.invoke.flatMap((invoke) => {
    const place = `${node.id}, invoke '${invoke.id}'`;
    const problems: Problem[] = [];
    const src = invoke.src as unknown;
    if (typeof src !== 'string' || src.startsWith('xstate.invoke.')) {
      problems.push({
        place,
        message:
          "has inline logic, which cannot be found again after a crash; name it in setup({ actors }) and write src: 'name'.",
      });
    } else if (!Object.hasOwn(machine.implementations.actors, src)) {
      problems.push({ place, message: `runs '${src}', which setup({ actors }) does not provide.` });
    }
    if (invoke.systemId !== undefined)
      problems.push({ place, message: 'has a systemId, which does not survive a restore; send to it by its id.' });
    if (invoke.onSnapshot !== undefined)
      problems.push({ place, message: 'has onSnapshot; let the child send events to its parent instead.' });
    return problems;
  });
}

function delayProblems(machine: AnyStateMachine, node: AnyNode): Problem[] {
  return Object.keys((node.config as { after?: object }).after ?? {}).flatMap((delay) => {
    const place = `${node.id}, after '${delay}'`;
    if (Object.hasOwn(machine.implementations.delays, delay)) return [];
    if (Number.isNaN(Number(delay)))
      return [
        { place, message: 'names a delay that setup({ delays }) does not provide; XState would fire it at once.' },
      ];
    return isDelay(Number(delay)) ? [] : [{ place, message: 'is not a finite number of milliseconds, 0 or more.' }];
  });
}

const COMPLETIONS = /^xstate\.(?:done\.actor|error\.actor)\..+$|^xstate\.(?:done\.state|after)\.[^*]+$/;

function descriptorProblems(
  node: AnyNode,
  descriptor: string,
  transitions: readonly { target?: unknown; actions: readonly unknown[] }[],
): Problem[] {
  const place = `${node.id}, on ${descriptor}`;
  // Named already, where they are written.
  if (descriptor === 'xstate.route') return [];
  if (node.invoke.some(({ id, onSnapshot }) => onSnapshot !== undefined && descriptor === `xstate.snapshot.${id}`))
    return [];
  if (descriptor.startsWith('xstate.') && !COMPLETIONS.test(descriptor)) {
    return [{ place, message: "takes XState's own events; name the completion or the event you mean." }];
  }
  if (descriptor !== '*' || transitions.every(({ target, actions }) => target === undefined && actions.length === 0))
    return [];
  return [
    {
      place,
      message:
        "takes completions and failures too; name the events, or write '*': undefined to refuse what is not named.",
    },
  ];
}
