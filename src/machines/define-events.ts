/** The events of an agent: payload schemas, who may send them, and what happens when the state does not take them. */
import { z } from 'zod';
import { PawlError } from '../errors.ts';
import type { Json, JsonObject } from '../records.ts';
import { findNonJson } from '../json.ts';
import { schemaProblem } from './schema-problem.ts';

export type Sender = 'caller' | 'model' | 'machine';
export type WhenIllegal = 'reject' | 'defer' | 'drop';

export interface EventOptions<S extends z.ZodObject = z.ZodObject> {
  schema: S;
  /** Default `reject`. */
  whenIllegal?: WhenIllegal | undefined;
  /** Default: `['model']` if some decide of the agent proposes it, else `['caller', 'machine']`. */
  from?: readonly Sender[] | undefined;
}

export type EventSpec = z.ZodObject | EventOptions;

export interface EventDefinition {
  readonly schema: z.ZodObject;
  readonly whenIllegal: WhenIllegal;
  /** Null: by default, which depends on the agent's decisions. */
  readonly from: readonly Sender[] | null;
}

/** A payload as an event, or why it is none. */
export type ParsedPayload<T extends string = string> =
  { ok: true; event: { type: T; [key: string]: Json } } | { ok: false; reason: string };

export interface Events<M extends Record<string, EventSpec> = Record<string, EventSpec>> {
  readonly specs: M;
  readonly types: readonly (keyof M & string)[];
  readonly definitions: { readonly [K in keyof M & string]: EventDefinition };
  has(type: string): boolean;
  /** Of a declared event; `reject` for any other. */
  policyOf(type: string): WhenIllegal;
  /** The types that the sender may send. */
  typesFrom(sender: Sender): (keyof M & string)[];
  /** The same events, fewer of them: the proposals of a decide. Throws INVALID_ARGUMENT for an unknown one. */
  pick<K extends keyof M & string>(...types: K[]): Events<Pick<M, K>>;
  /** Parses a payload against the event's schema; the result is what is stored. */
  parsePayload(type: string, payload: unknown): ParsedPayload<keyof M & string>;
}

type SchemaOf<S> = S extends z.ZodObject ? S : S extends EventOptions<infer T> ? T : never;
type Simplify<T> = { [K in keyof T]: T[K] };
// z.object({}) infers Record<string, never>, whose intersection with { type } is never.
type Payload<S extends z.ZodObject, V> = keyof S['shape'] extends never ? unknown : V;
type SpecsOf<E> = E extends Events<infer M> ? M : never;

/** The union of `{ type, ...payload }` as machines see it: pass it to `setup({ types: { events } })`. */
export type EventsOf<E> = {
  [K in keyof SpecsOf<E> & string]: Simplify<
    { type: K } & Payload<SchemaOf<SpecsOf<E>[K]>, z.output<SchemaOf<SpecsOf<E>[K]>>>
  >;
}[keyof SpecsOf<E> & string];

/** The union as a sender writes it: fields with a default may be left out. */
export type EventInputsOf<E> = {
  [K in keyof SpecsOf<E> & string]: Simplify<
    { type: K } & Payload<SchemaOf<SpecsOf<E>[K]>, z.input<SchemaOf<SpecsOf<E>[K]>>>
  >;
}[keyof SpecsOf<E> & string];

const EVENT_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
const SENDERS: readonly Sender[] = ['caller', 'model', 'machine'];
const BY_DEFAULT: readonly Sender[] = ['caller', 'machine'];
const POLICIES: readonly WhenIllegal[] = ['reject', 'defer', 'drop'];

/** Declares events. Throws AGENT_INVALID for a name, schema, policy or sender that cannot be used. */
export function defineEvents<const M extends Record<string, EventSpec>>(specs: M): Events<M> {
  const definitions: Record<string, EventDefinition> = {};
  for (const [type, spec] of Object.entries(specs)) definitions[type] = defineEvent(type, spec);
  return createEvents(specs, definitions);
}

/** The same events, those without `from` resolved: proposals come from the model only. */
export function resolveSenders<M extends Record<string, EventSpec>>(
  events: Events<M>,
  proposed: ReadonlySet<string>,
): Events<M> {
  const definitions: Record<string, EventDefinition> = {};
  for (const [type, definition] of Object.entries<EventDefinition>(events.definitions)) {
    definitions[type] = { ...definition, from: definition.from ?? (proposed.has(type) ? ['model'] : BY_DEFAULT) };
  }
  return createEvents(events.specs, definitions);
}

function createEvents<M extends Record<string, EventSpec>>(
  specs: M,
  definitions: Record<string, EventDefinition>,
): Events<M> {
  return {
    specs,
    types: Object.keys(specs),
    definitions: definitions as Events<M>['definitions'],
    has: (type) => Object.hasOwn(definitions, type),
    policyOf: (type) => (Object.hasOwn(definitions, type) ? definitions[type]?.whenIllegal : undefined) ?? 'reject',
    typesFrom: (sender) =>
      Object.keys(definitions).filter((type) => (definitions[type]?.from ?? BY_DEFAULT).includes(sender)),
    pick: (...types) => pickEvents(specs, definitions, types),
    parsePayload: (type, payload) => parsePayload(definitions, type, payload),
  };
}

function pickEvents<M extends Record<string, EventSpec>, K extends keyof M & string>(
  specs: M,
  definitions: Record<string, EventDefinition>,
  types: K[],
): Events<Pick<M, K>> {
  const picked: Record<string, EventDefinition> = {};
  for (const type of types) {
    const definition = definitions[type];
    if (definition === undefined) {
      throw new PawlError(
        'INVALID_ARGUMENT',
        `pick('${type}'): no such event; there are ${Object.keys(specs).join(', ')}.`,
      );
    }
    picked[type] = definition;
  }
  return createEvents(Object.fromEntries(types.map((type) => [type, specs[type]])) as Pick<M, K>, picked);
}

function parsePayload<T extends string>(
  definitions: Record<string, EventDefinition>,
  type: string,
  payload: unknown,
): ParsedPayload<T> {
  const definition = Object.hasOwn(definitions, type) ? definitions[type] : undefined;
  if (definition === undefined) return { ok: false, reason: `unknown event '${type}'` };
  const problem = findNonJson(payload ?? {}, 'payload');
  if (problem !== null) return { ok: false, reason: `${problem.path} is ${problem.found}, not JSON` };
  const parsed = definition.schema.safeParse(payload ?? {});
  if (!parsed.success) return { ok: false, reason: z.prettifyError(parsed.error) };
  return { ok: true, event: { ...(parsed.data as JsonObject), type: type as T } };
}

function defineEvent(type: string, spec: EventSpec): EventDefinition {
  if (!EVENT_NAME.test(type)) {
    throw invalid(`event '${type}': a name is a letter followed by letters, digits and _`);
  }
  const options: EventOptions = spec instanceof z.ZodType ? { schema: spec } : spec;
  const { schema, whenIllegal = 'reject', from = null } = options;
  if (!(schema instanceof z.ZodObject)) throw invalid(`event '${type}': the payload schema must be a z.object`);
  if (Object.hasOwn(schema.shape, 'type'))
    throw invalid(`event '${type}': a payload field 'type' hides the event's own type`);
  const problem = schemaProblem(schema);
  if (problem !== null) throw invalid(`event '${type}': ${problem}`);
  if (!POLICIES.includes(whenIllegal)) throw invalid(`event '${type}': whenIllegal is one of ${POLICIES.join(', ')}`);
  if (from !== null && (from.length === 0 || !from.every((sender) => SENDERS.includes(sender)))) {
    throw invalid(`event '${type}': from lists some of ${SENDERS.join(', ')}`);
  }
  return { schema, whenIllegal, from };
}

function invalid(what: string): PawlError {
  return new PawlError('AGENT_INVALID', `defineEvents: ${what}.`);
}
