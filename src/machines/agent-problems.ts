/** What is wrong with the definition of an agent, apart from its machine. */
import type { AnyStateMachine } from 'xstate';
import type { z } from 'zod';
import { findNonJson } from '../json.ts';
import type { EventDefinition } from './define-events.ts';
import { isMachine } from './child-machines.ts';
import { brandOf } from './logic.ts';
import { allNodes } from './nodes.ts';
import { schemaProblem } from './schema-problem.ts';

/** The spec with its types erased. */
interface ErasedSpec {
  name: string;
  version: number;
  machine: AnyStateMachine;
  events: { types: readonly string[]; definitions: Record<string, EventDefinition> };
  input: z.ZodType;
  context?: z.ZodType;
  tools?: readonly unknown[];
  budget?: Record<string, unknown>;
  samples?: Record<string, readonly unknown[]>;
  migrations?: Record<string, unknown>;
  maxIterations?: number;
}

const AGENT_NAME = /^[A-Za-z0-9._:-]{1,200}$/;
const BUDGETS = ['tokens', 'microUsd', 'toolCalls', 'steps', 'wallTimeMs'];

export function agentProblems(spec: ErasedSpec): string[] {
  if (!isMachine(spec.machine)) return ['machine must be an XState machine: setup({ … }).createMachine({ … })'];
  return [...identity(spec), ...schemas(spec), ...events(spec), ...tools(spec), ...numbers(spec)];
}

function identity({ name, version, migrations }: ErasedSpec): string[] {
  const problems: string[] = [];
  if (typeof name !== 'string' || !AGENT_NAME.test(name))
    problems.push('name is 1 to 200 characters of A-Z a-z 0-9 . _ : -');
  if (!isPositive(version)) problems.push(`version is a positive whole number, not ${String(version)}`);
  for (const from of Object.keys(migrations ?? {})) {
    if (!isPositive(Number(from)) || Number(from) >= version) {
      problems.push(`migrations: '${from}' is not an earlier version than ${version}`);
    }
  }
  return problems;
}

function schemas({ input, context }: ErasedSpec): string[] {
  const problems: string[] = [];
  for (const [name, schema] of Object.entries({ input, context })) {
    if (schema === undefined) {
      if (name === 'input') problems.push('input: a zod schema is needed; z.undefined() is not one, use z.object({})');
      continue;
    }
    const problem = schemaProblem(schema);
    if (problem !== null) problems.push(`${name}: ${problem}`);
  }
  return problems;
}

function events({ machine, events: declared, samples }: ErasedSpec): string[] {
  if (typeof declared?.definitions !== 'object') return ['events must come from defineEvents({ … })'];
  const known = new Set(declared.types);
  const taken = new Set(allNodes(machine.root).flatMap((node) => [...node.transitions.keys()]));
  const problems = [...taken]
    .filter((type) => !known.has(type) && !type.includes('*') && !type.startsWith('xstate.'))
    .map((type) => `events: the chart takes '${type}', which defineEvents does not declare`);
  for (const [type, payloads] of Object.entries(samples ?? {})) {
    const schema = known.has(type) ? declared.definitions[type]?.schema : undefined;
    if (schema === undefined) problems.push(`samples: '${type}' is no event`);
    else if (!payloads.every((payload) => findNonJson(payload) === null && schema.safeParse(payload).success)) {
      problems.push(`samples: a payload of '${type}' does not fit its schema`);
    }
  }
  return problems;
}

function tools({ tools: given }: ErasedSpec): string[] {
  const strange = (given ?? []).some((logic) => brandOf(logic) === null);
  return strange ? ['tools: each must be made by tool()'] : [];
}

function numbers({ budget, maxIterations }: ErasedSpec): string[] {
  const problems: string[] = [];
  for (const [name, value] of Object.entries(budget ?? {})) {
    if (!BUDGETS.includes(name)) problems.push(`budget: '${name}' is none of ${BUDGETS.join(', ')}`);
    else if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= 0)) {
      problems.push(`budget: ${name} is a whole number, 0 or more, not ${String(value)}`);
    }
  }
  if (maxIterations !== undefined && !isPositive(maxIterations))
    problems.push('maxIterations is a positive whole number');
  return problems;
}

function isPositive(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
