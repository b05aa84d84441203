/** decide(): a model proposes one of a few declared events; the chart decides whether it is taken. */
import type { z } from 'zod';
import { brandOf, createLogic, type DurableLogic } from '../machines/logic.ts';
import type { Json } from '../records.ts';
import { checkFunction, checkNaming, checkWhole, refuseDefinition, shown } from './definition-checks.ts';
import { jsonSchemaOf } from './json-schema.ts';
import type { RunInfo } from './tool.ts';

/** What `events.pick('PLAN', 'DECLINE')` gives: event types and the schemas of their payloads. */
export interface Proposals {
  readonly types: readonly string[];
  readonly specs: { readonly [type: string]: z.ZodObject | { readonly schema: z.ZodObject } };
}

type SchemaOf<S> = S extends z.ZodObject ? S : S extends { schema: infer T extends z.ZodObject } ? T : never;
// z.object({}) infers Record<string, never>, whose intersection with { type } is never.
type Payload<S extends z.ZodObject> = keyof S['shape'] extends never ? unknown : z.output<S>;

/** The proposal as the event that the chart received. */
export type ProposalOf<P extends Proposals> = {
  [T in keyof P['specs'] & string]: { type: T } & Payload<SchemaOf<P['specs'][T]>>;
}[keyof P['specs'] & string];

export interface PromptMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface PromptContext {
  /** Of the invoke. */
  input: Json;
  run: RunInfo;
  /** What the chart would take now; a subset of the declared proposals. */
  proposals: { type: string; jsonSchema: Json }[];
  /** Earlier answers to this decision that were refused, oldest first. */
  refusals: { reason: string; proposal: Json }[];
  /** The rolling summary, or null. */
  summary: string | null;
}

export interface DecideSpec<P extends Proposals> {
  name: string;
  version: string;
  proposals: P;
  /** A key of `createRuntime({ models })`, else given to `models.default`. Default `default`. */
  model?: string | undefined;
  /** Answers that may be refused before `onError`; 1 to 100. Default 3. */
  maxAttempts?: number | undefined;
  /** Tokens of one answer; 1 to 1,000,000. Default 1,000. */
  maxOutputTokens?: number | undefined;
  /** Tokens of the whole decision, prompts and answers. Default: the run's budget alone. */
  tokenBudget?: number | undefined;
  /** Per question, 1 ms to 24.8 days. Default 60,000. */
  timeoutMs?: number | undefined;
  /** Rebuilt for each question. Must be pure. */
  prompt: (context: PromptContext) => PromptMessage[];
}

export interface DecideDefinition {
  name: string;
  version: string;
  proposals: {
    types: readonly string[];
    /** Of the payloads, by event type. */
    schemas: Readonly<Record<string, { schema: z.ZodObject; jsonSchema: Json }>>;
  };
  model: string;
  maxAttempts: number;
  maxOutputTokens: number;
  tokenBudget: number | null;
  timeoutMs: number;
  prompt(context: PromptContext): PromptMessage[];
}

/** Any JSON. Neither `Json` (interfaces have no index signature) nor `unknown` (it would swallow the mapper's type). */
export type DecideInput = object | string | number | boolean | null | undefined;
export type DecideLogic<TOutput> = DurableLogic<'decide', DecideInput, TOutput, DecideDefinition>;

/**
 * Defines a decision as XState actor logic. Its invoke input is any JSON.
 *
 * @throws {PawlError} TOOL_INVALID when the definition is not complete; the message says what to write.
 */
export function decide<P extends Proposals>(spec: DecideSpec<P>): DecideLogic<{ proposal: ProposalOf<P> }> {
  const what = checkNaming('Decision', spec);
  const { model = 'default', maxAttempts = 3, maxOutputTokens = 1000, tokenBudget = null, timeoutMs = 60_000 } = spec;
  if (typeof model !== 'string' || model === '') refuseDefinition(what, `model is ${shown(model)}`, 'write its name');
  checkWhole(what, 'maxAttempts', maxAttempts, 1, 100);
  checkWhole(what, 'maxOutputTokens', maxOutputTokens, 1, 1_000_000);
  if (tokenBudget !== null) checkWhole(what, 'tokenBudget', tokenBudget, 1, 1_000_000_000);
  checkWhole(what, 'timeoutMs', timeoutMs, 1, 2 ** 31 - 1);
  checkFunction(what, 'prompt', spec.prompt);
  const definition: DecideDefinition = {
    name: spec.name,
    version: spec.version,
    proposals: checkProposals(what, spec.proposals),
    model,
    maxAttempts,
    maxOutputTokens,
    tokenBudget,
    timeoutMs,
    prompt: spec.prompt,
  };
  return createLogic({ kind: 'decide', name: spec.name, definition: Object.freeze(definition) });
}

/** The definition inside logic made by `decide`; null for any other value. */
export function decideOf(logic: unknown): DecideDefinition | null {
  const brand = brandOf(logic);
  return brand?.kind === 'decide' ? (brand.definition as DecideDefinition) : null;
}

function checkProposals(what: string, given: Partial<Proposals> | undefined): DecideDefinition['proposals'] {
  const { types, specs } = given ?? {};
  if (!Array.isArray(types) || types.length === 0 || specs === undefined) {
    refuseDefinition(what, `proposals is ${shown(given)}`, "write events.pick('PLAN', …) with at least one event");
  }
  const schemas = types.map((type: string) => {
    const declared = specs[type];
    // A Zod schema has no property `schema`; whatever else is given is refused by jsonSchemaOf.
    const schema = typeof declared === 'object' && 'schema' in declared ? declared.schema : (declared as z.ZodObject);
    const jsonSchema = jsonSchemaOf(what, `proposals.${type}`, schema, 'input');
    jsonSchemaOf(what, `proposals.${type}`, schema, 'output');
    return [type, { schema, jsonSchema }];
  });
  return { types: [...types], schemas: Object.fromEntries(schemas) };
}
