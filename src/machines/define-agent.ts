/** An agent: a machine with a name and version, its events, input, context and limits. */
import type { AnyStateMachine, ContextFrom, EventFromLogic, InputFrom, OutputFrom, StateValueFrom } from 'xstate';
import type { z } from 'zod';
import { PawlError } from '../errors.ts';
import { findNonJson } from '../json.ts';
import type { Budget, Fault, Json, JsonObject } from '../records.ts';
import { agentProblems } from './agent-problems.ts';
import { resolveSenders, type EventInputsOf, type Events, type EventsOf, type EventSpec } from './define-events.ts';
import { createDurableMachine, type DurableMachine } from './durable-machine.ts';
import type { LogicBrand } from './logic.ts';

// Each agent has its own specs; erased, they are only known to be some.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyEvents = Events<any>;

/** A stored state on its way from one version to the next. */
export type Migration = (state: JsonObject) => JsonObject;

/** What `defineAgent` takes. Times in ms, money in integer micro-units. */
export interface AgentSpec<N extends string, M extends AnyStateMachine, E extends AnyEvents, I extends z.ZodType> {
  name: N;
  /** Positive integer; raise it with every change of the machine's structure. */
  version: number;
  machine: M;
  events: E & EventsFit<M, E>;
  /** What `start` takes; its output is the machine's input. */
  input: I & InputFit<M, I>;
  /** Each changed context must parse; without it the context need only be JSON. */
  context?: z.ZodType<ContextFrom<M>> | undefined;
  /** Evaluated once at start and stored; never changes. */
  goal?: string | ((args: { input: z.output<I> }) => string) | undefined;
  /** Logic that is not in the chart's actors, such as tools that compensate. */
  tools?: readonly object[] | undefined;
  budget?: Budget['limit'] | undefined;
  approveOutbound?: boolean | undefined;
  /** Rule of the go-live gate → why it is accepted here. */
  accept?: Readonly<Record<string, string>> | undefined;
  /** Paths shown as digests. */
  sensitive?: readonly string[] | undefined;
  /** From version → to the next one. */
  migrations?: Readonly<Record<number, Migration>> | undefined;
  /** Payloads for exploration; else drawn from the schemas. */
  samples?: SamplesOf<E> | undefined;
  /** Exploration key for fields that grow. */
  abstract?: ((context: ContextFrom<M>) => Json) | undefined;
  /** Microsteps per macrostep, when the machine sets no `maxIterations`; default 1,000. */
  maxIterations?: number | undefined;
}

export interface AgentDefinition<
  N extends string = string,
  M extends AnyStateMachine = AnyStateMachine,
  E extends AnyEvents = AnyEvents,
  I extends z.ZodType = z.ZodType,
> {
  readonly name: N;
  readonly version: number;
  readonly machine: M;
  /** With the senders of each event resolved. */
  readonly events: E;
  readonly input: I;
  readonly context: z.ZodType | null;
  /** Throws what the author's function throws. */
  readonly goal: (args: { input: Json }) => string;
  readonly tools: readonly object[];
  readonly budget: Budget['limit'];
  readonly approveOutbound: boolean;
  readonly accept: Readonly<Record<string, string>>;
  readonly sensitive: readonly string[];
  readonly migrations: Readonly<Record<number, Migration>>;
  readonly samples: Readonly<Record<string, readonly JsonObject[]>>;
  readonly abstract: ((context: Json) => Json) | null;
  readonly durable: DurableMachine;
  /** Digest of the machine's structure. */
  readonly structure: string;
  /** Tools, decisions and approvals by the name they have in the chart. */
  readonly logic: Readonly<Record<string, LogicBrand>>;
  readonly maxIterations: number;
}

/** `E` when the machine's events and the declared ones are the same union; else what is missing and what is extra. */
export type EventsFit<M extends AnyStateMachine, E> = string extends EventFromLogic<M>['type']
  ? unknown
  : [EventFromLogic<M>] extends [EventsOf<E>]
    ? [EventsOf<E>] extends [EventFromLogic<M>]
      ? unknown
      : EventsDiffer<M, E>
    : EventsDiffer<M, E>;

interface EventsDiffer<M extends AnyStateMachine, E> {
  error: 'The events of the machine and of defineAgent differ: pass EventsOf<typeof events> to setup({ types }).';
  missing: Exclude<EventFromLogic<M>['type'], EventsOf<E>['type' & keyof EventsOf<E>]>;
  extra: Exclude<EventsOf<E>['type' & keyof EventsOf<E>], EventFromLogic<M>['type']>;
  differing: Exclude<EventFromLogic<M>, EventsOf<E>>;
}

/** Refuses an input schema whose output the machine does not take. */
export type InputFit<M extends AnyStateMachine, I extends z.ZodType> = [z.output<I>] extends [InputFrom<M>]
  ? unknown
  : { error: "The output of the input schema is not the machine's input."; machine: InputFrom<M>; schema: z.output<I> };

type SamplesOf<E> = {
  [T in EventInputsOf<E>['type' & keyof EventInputsOf<E>]]?: readonly Omit<
    Extract<EventInputsOf<E>, { type: T }>,
    'type'
  >[];
};

export type AgentName<A extends AgentDefinition> = A['name'];
/** What `start` takes. */
export type AgentInput<A extends AgentDefinition> = z.input<A['input']>;
/** What `send` takes: `{ type, ...payload }`. */
export type AgentEvent<A extends AgentDefinition> = A extends AgentDefinition ? EventInputsOf<A['events']> : never;
export type AgentContext<A extends AgentDefinition> = A extends AgentDefinition ? ContextFrom<A['machine']> : never;
export type AgentOutput<A extends AgentDefinition> = A extends AgentDefinition ? OutputFrom<A['machine']> : never;
export type AgentStateValue<A extends AgentDefinition> = A extends AgentDefinition
  ? StateValueFrom<A['machine']>
  : never;

/**
 * Checks an agent and prepares its machine. Throws MACHINE_NOT_DURABLE for what cannot be resumed, and AGENT_INVALID for
 * anything else, each naming all problems found.
 */
export function defineAgent<
  const N extends string,
  M extends AnyStateMachine,
  E extends Events<Record<string, EventSpec>> | AnyEvents,
  I extends z.ZodType,
>(spec: AgentSpec<N, M, E, I>): AgentDefinition<N, M, E, I> {
  const problems = agentProblems(spec as never);
  if (problems.length > 0) {
    const lines = problems.map((problem) => `- ${problem}`);
    throw new PawlError('AGENT_INVALID', `Agent '${spec.name}' version ${spec.version}:\n${lines.join('\n')}`, {
      details: { agent: String(spec.name), problems },
    });
  }
  const durable = createDurableMachine(spec.machine, { context: spec.context, maxIterations: spec.maxIterations });
  const { goal = '' } = spec;
  return {
    name: spec.name,
    version: spec.version,
    machine: spec.machine,
    events: resolveSenders(spec.events, proposedEvents(durable)) as E,
    input: spec.input,
    context: spec.context ?? null,
    goal: ({ input }) => (typeof goal === 'string' ? goal : goal({ input: input as z.output<I> })),
    tools: spec.tools ?? [],
    budget: spec.budget ?? {},
    approveOutbound: spec.approveOutbound ?? false,
    accept: spec.accept ?? {},
    sensitive: spec.sensitive ?? [],
    migrations: spec.migrations ?? {},
    samples: (spec.samples ?? {}) as AgentDefinition['samples'],
    abstract: (spec.abstract as AgentDefinition['abstract'] | undefined) ?? null,
    durable,
    structure: durable.structure,
    logic: durable.logic,
    maxIterations: durable.maxIterations,
  };
}

/** What the decisions of the chart may propose. */
function proposedEvents(machine: DurableMachine): Set<string> {
  const decisions = Object.values(machine.logic).filter((brand) => brand.kind === 'decide');
  return new Set(
    decisions.flatMap(
      (brand) => (brand.definition as { proposals?: { types?: readonly string[] } }).proposals?.types ?? [],
    ),
  );
}

/** A start's input as the machine gets it. */
export type ParsedInput = { ok: true; input: Json } | { ok: false; fault: Fault };

/** Parses what `start` was given; the result is what is stored and what the machine gets. */
export function parseInput(agent: AgentDefinition, input: unknown): ParsedInput {
  const parsed = agent.input.safeParse(input);
  if (!parsed.success) {
    const message = parsed.error.issues
      .map(({ path, message: why }) => `${['input', ...path].join('.')}: ${why}`)
      .join('; ');
    return { ok: false, fault: { code: 'INVALID_INPUT', message } };
  }
  const problem = findNonJson(parsed.data, 'input');
  if (problem === null) return { ok: true, input: parsed.data as Json };
  return { ok: false, fault: { code: 'NOT_JSON', message: `${problem.path} is ${problem.found}` } };
}
