/** tool(): one thing that can be done in the world, with all that recovery has to know about it. */
import type { z } from 'zod';
import { digestOf } from '../json.ts';
import { brandOf, createLogic, type DurableLogic } from '../machines/logic.ts';
import type { Json } from '../records.ts';
import { approvalOf, type ApprovalDefinition, type ApprovalLogic } from './approval.ts';
import { checkFunction, checkNaming, checkOneOf, checkWhole, refuseDefinition, shown } from './definition-checks.ts';
import { jsonSchemaOf } from './json-schema.ts';
import type { Reconciled } from './outcome.ts';

/** What a tool, a policy or an approval is told about the run. `sequence` is the one at which the call was planned. */
export interface RunInfo {
  runId: string;
  tenant: string;
  agent: string;
  agentVersion: number;
  sequence: number;
  createdBy: string | null;
  subject: string | null;
  labels: Record<string, string>;
  traceId: string;
}

export interface ReconcileContext<I> {
  input: I;
  /** Give it to the provider as the idempotency key: it is the same for every attempt of this operation. */
  operationId: string;
  /** From 1; in `reconcile` the latest attempt written. */
  attempt: number;
  /** Aborts at the time-out, when the state is left and when the worker stops. */
  signal: AbortSignal;
  run: RunInfo;
}

export interface ExecuteContext<I> extends ReconcileContext<I> {
  artifacts: unknown;
}

export interface RetrySpec {
  /** Attempts since the last definite answer; 1 to 1000. */
  maxAttempts: number;
  /** 0 to 1 day. */
  minDelayMs: number;
  /** `minDelayMs` to 1 day. */
  maxDelayMs: number;
}

export interface Undo {
  tool: AnyTool | string;
  /** The name of `tool`, whichever form that has. */
  toolName: string;
  /** What it returns is not parsed yet. */
  input: (arg: { input: Json; output: Json }) => unknown;
}

export interface ToolDefinition {
  name: string;
  version: string;
  effect: 'read' | 'write';
  scope: 'run' | 'tenant';
  idempotent: boolean;
  timeoutMs: number;
  settleAfterMs: number;
  reconcileForMs: number;
  retry: RetrySpec;
  input: z.ZodType;
  output: z.ZodType;
  key: ((arg: { input: Json }) => Json[]) | null;
  execute(ctx: ExecuteContext<Json>): Promise<unknown>;
  reconcile: ((ctx: ReconcileContext<Json>) => Promise<unknown>) | null;
  compensate: Undo | null;
  requires: { approval: ApprovalDefinition; covers: ((arg: { input: Json }) => unknown) | null } | null;
  outbound: boolean;
  /** Paths such as `input.cardToken` or `output.iban`. */
  sensitive: string[];
  /** Digest of the JSON Schemas of `input` and `output`. */
  schemaDigest: string;
}

export type ToolLogic<TInput, TOutput> = DurableLogic<'tool', TInput, TOutput, ToolDefinition>;
// The output of a tool that is only named, not called, is not looked at; logic is invariant in it.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyTool = ToolLogic<any, any>;

interface ToolBase<I extends z.ZodType, O extends z.ZodType> {
  name: string;
  version: string;
  /** Plain JSON: no transforms, coercion or dates. Parsed once, before the intent is stored. */
  input: I;
  /** Plain JSON. What `execute` returns is parsed once and stored, at most 256 KB. */
  output: O;
  /** What "the same action" means, as JSON values. Default: each invocation is an action of its own. */
  key?: ((arg: { input: z.output<I> }) => Json[]) | undefined;
  /** `tenant`: unique across the tenant's runs; needs a `key`. Default `run`. */
  scope?: 'run' | 'tenant' | undefined;
  /** The provider answers a repeated operationId with its FIRST outcome, refusals too. Default false. */
  idempotent?: boolean | undefined;
  /** How long after the time-out the effect may still arrive; 0 (default) to 1 year. */
  settleAfterMs?: number | undefined;
  /** How long an unknown outcome is asked for before a person is; default 24 h, 0 to 1 year. */
  reconcileForMs?: number | undefined;
  /** Default 3 attempts, 200 ms to 30 s apart. */
  retry?: { [K in keyof RetrySpec]?: RetrySpec[K] | undefined } | undefined;
  execute: (ctx: ExecuteContext<z.output<I>>) => Promise<z.input<O>>;
  requires?: ApprovalLogic | { approval: ApprovalLogic; covers: (arg: { input: z.output<I> }) => unknown } | undefined;
  /** Something leaves the house. Default false. */
  outbound?: boolean | undefined;
  /** Shown as digests wherever people look. */
  sensitive?: string[] | undefined;
}

interface ReadSpec {
  effect: 'read';
  /** Per attempt, 1 ms to 24.8 days. Default 30,000. */
  timeoutMs?: number | undefined;
  reconcile?: undefined;
  compensate?: undefined;
}

interface WriteSpec<I extends z.ZodType, O extends z.ZodType, CI> {
  effect: 'write';
  /** Per attempt, 1 ms to 24.8 days: after it (and `settleAfterMs`) an absence at the provider is believed. */
  timeoutMs: number;
  /** Asks the provider what became of `operationId`. Must not change anything, unless it answers `final`. */
  reconcile?: ((ctx: ReconcileContext<z.output<I>>) => Promise<Reconciled<z.input<O>>>) | undefined;
  /** How it is undone: a tool value, or the name of one in `defineAgent({ tools })`. */
  compensate?:
    | {
        // See AnyTool for the output.
        // oxlint-disable-next-line typescript/no-explicit-any
        tool: ToolLogic<CI, any>;
        input: (arg: { input: z.output<I>; output: z.output<O> }) => NoInfer<CI>;
      }
    | { tool: string; input: (arg: { input: z.output<I>; output: z.output<O> }) => unknown }
    | undefined;
}

export type ToolSpec<I extends z.ZodType, O extends z.ZodType, CI = never> = ToolBase<I, O> &
  (ReadSpec | WriteSpec<I, O, CI>);

const DAY_MS = 86_400_000;
const YEAR_MS = 366 * DAY_MS;
/** The longest delay that one timer of Node can hold. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Defines a tool as XState actor logic for `setup({ actors })`; only createRuntime performs it.
 *
 * @throws {PawlError} TOOL_INVALID when the definition could not be recovered or stored; the message says what to write.
 */
export function tool<I extends z.ZodType, O extends z.ZodType, CI = never>(
  spec: ToolSpec<I, O, CI>,
): ToolLogic<z.input<I>, z.output<O>> {
  const what = checkNaming('Tool', spec);
  checkOneOf(what, 'effect', spec.effect, ['read', 'write']);
  checkOneOf(what, 'scope', spec.scope ?? 'run', ['run', 'tenant']);
  checkFunction(what, 'execute', spec.execute);
  for (const field of ['key', 'reconcile'] as const) {
    if (spec[field] !== undefined) checkFunction(what, field, spec[field]);
  }
  checkEffect(what, spec);
  // Both sides of both schemas: a transform is seen from one side only.
  const input = jsonSchemaOf(what, 'input', spec.input, 'input');
  jsonSchemaOf(what, 'input', spec.input, 'output');
  const output = jsonSchemaOf(what, 'output', spec.output, 'output');
  jsonSchemaOf(what, 'output', spec.output, 'input');
  const definition: ToolDefinition = {
    name: spec.name,
    version: spec.version,
    effect: spec.effect,
    scope: spec.scope ?? 'run',
    idempotent: spec.idempotent === true,
    ...checkTimes(what, spec),
    input: spec.input,
    output: spec.output,
    // The author's types are erased here: values are parsed against the schemas before these are called.
    key: (spec.key as ToolDefinition['key'] | undefined) ?? null,
    execute: spec.execute as ToolDefinition['execute'],
    reconcile: (spec.reconcile as ToolDefinition['reconcile'] | undefined) ?? null,
    compensate: checkCompensate(what, spec.compensate),
    requires: checkRequires(what, spec.requires),
    outbound: spec.outbound === true,
    sensitive: checkSensitive(what, spec.sensitive ?? []),
    schemaDigest: digestOf({ input, output }),
  };
  return createLogic({ kind: 'tool', name: spec.name, definition: Object.freeze(definition) });
}

/** The definition inside logic made by `tool`, also by another copy of the package; null for any other value. */
export function toolOf(logic: unknown): ToolDefinition | null {
  const brand = brandOf(logic);
  return brand?.kind === 'tool' ? (brand.definition as ToolDefinition) : null;
}

/**
 * What is done with an attempt that has no receipt: performed again under the same id, asked for at the provider, or
 * given to a person (the table of DESIGN 3.2).
 */
export function recoveryOf({
  effect,
  reconcile,
  idempotent,
}: Pick<ToolDefinition, 'effect' | 'reconcile' | 'idempotent'>): 'repeat' | 'reconcile' | 'human' {
  if (effect === 'read') return 'repeat';
  if (reconcile !== null) return 'reconcile';
  return idempotent ? 'repeat' : 'human';
}

function checkEffect(
  what: string,
  spec: {
    effect: string;
    scope?: unknown;
    key?: unknown;
    timeoutMs?: unknown;
    reconcile?: unknown;
    compensate?: unknown;
  },
): void {
  if (spec.effect === 'write' && spec.timeoutMs === undefined) {
    refuseDefinition(
      what,
      'timeoutMs is missing on a write',
      'write how long one attempt may take in ms; without it nobody knows when an absence at the provider is final',
    );
  }
  for (const field of ['reconcile', 'compensate'] as const) {
    if (spec.effect === 'read' && spec[field] !== undefined) {
      refuseDefinition(
        what,
        `${field} is given on a read`,
        `remove it, or write effect: 'write'; a read is just performed again`,
      );
    }
  }
  if (spec.scope === 'tenant' && spec.key === undefined) {
    refuseDefinition(
      what,
      "scope is 'tenant' without a key",
      'write key: ({ input }) => […] so that two runs can mean the same action',
    );
  }
}

function checkTimes(
  what: string,
  spec: Pick<ToolBase<z.ZodType, z.ZodType>, 'settleAfterMs' | 'reconcileForMs' | 'retry'> & {
    timeoutMs?: number | undefined;
  },
): Pick<ToolDefinition, 'timeoutMs' | 'settleAfterMs' | 'reconcileForMs' | 'retry'> {
  const { timeoutMs = 30_000, settleAfterMs = 0, reconcileForMs = DAY_MS } = spec;
  const { maxAttempts = 3, minDelayMs = 200, maxDelayMs = Math.max(30_000, minDelayMs) } = spec.retry ?? {};
  checkWhole(what, 'timeoutMs', timeoutMs, 1, LONGEST_TIMEOUT_MS);
  checkWhole(what, 'settleAfterMs', settleAfterMs, 0, YEAR_MS);
  checkWhole(what, 'reconcileForMs', reconcileForMs, 0, YEAR_MS);
  checkWhole(what, 'retry.maxAttempts', maxAttempts, 1, 1000);
  checkWhole(what, 'retry.minDelayMs', minDelayMs, 0, DAY_MS);
  checkWhole(what, 'retry.maxDelayMs', maxDelayMs, minDelayMs, DAY_MS);
  return { timeoutMs, settleAfterMs, reconcileForMs, retry: { maxAttempts, minDelayMs, maxDelayMs } };
}

function checkCompensate(
  what: string,
  given: { tool: unknown; input: unknown } | undefined,
): ToolDefinition['compensate'] {
  if (given === undefined) return null;
  checkFunction(what, 'compensate.input', given.input);
  const logic = toolOf(given.tool);
  const toolName = logic?.effect === 'write' ? logic.name : given.tool;
  if (typeof toolName !== 'string' || toolName === '') {
    refuseDefinition(
      what,
      `compensate.tool is ${logic ? 'a read' : shown(given.tool)}`,
      "write a tool() with effect 'write', or the name of one in defineAgent({ tools })",
    );
  }
  return { tool: logic ? (given.tool as AnyTool) : toolName, toolName, input: given.input as Undo['input'] };
}

function checkRequires(what: string, given: unknown): ToolDefinition['requires'] {
  if (given === undefined) return null;
  const bare = approvalOf(given);
  if (bare) return { approval: bare, covers: null };
  const { approval: logic, covers } = (given ?? {}) as { approval?: unknown; covers?: unknown };
  const definition = approvalOf(logic);
  if (!definition) {
    refuseDefinition(
      what,
      `requires is ${shown(given)}`,
      'write an approval(), or { approval, covers: ({ input }) => … }',
    );
  }
  checkFunction(what, 'requires.covers', covers);
  return { approval: definition, covers: covers as (arg: { input: Json }) => unknown };
}

function checkSensitive(what: string, paths: unknown): string[] {
  if (!Array.isArray(paths)) return refuseDefinition(what, `sensitive is ${shown(paths)}`, 'write a list of paths');
  for (const path of paths as unknown[]) {
    if (typeof path === 'string' && /^(input|output)(\.[^.]+)*$/.test(path)) continue;
    refuseDefinition(what, `sensitive holds ${shown(path)}`, "write paths such as 'input.cardToken'");
  }
  return [...(paths as string[])];
}
