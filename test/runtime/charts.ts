/** Charts and tools whose behaviour is written beside the test that needs it. */
import { assign, setup, type AnyStateMachine } from 'xstate';
import { z } from 'zod';
import { defineAgent, type AgentDefinition } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventSpec } from '../../src/machines/define-events.ts';
import type { Json, LedgerEntry } from '../../src/records.ts';
import type { Reconciled } from '../../src/tools/outcome.ts';
import { tool, type AnyTool } from '../../src/tools/tool.ts';
import type { RunView } from '../../src/runtime/view.ts';
import type { Spawned } from './world.ts';

export interface Call {
  input: { key: string; n: number };
  operationId: string;
  attempt: number;
  signal: AbortSignal;
  atMs: number;
}

export type Answer = { id: string };

/** What a tool does at its next calls, first in first out; then it answers `{ id: 'ok' }`. */
export class Script {
  readonly calls: Call[] = [];
  readonly asked: Call[] = [];
  readonly #steps: ((call: Call) => unknown)[];
  readonly #answers: ((call: Call) => unknown)[];

  constructor(steps: ((call: Call) => unknown)[] = [], answers: ((call: Call) => unknown)[] = []) {
    this.#steps = steps;
    this.#answers = answers;
  }

  async execute(call: Omit<Call, 'atMs'>): Promise<Answer> {
    const full = { ...call, atMs: performance.now() };
    this.calls.push(full);
    return (await (this.#steps.shift() ?? (() => ({ id: 'ok' })))(full)) as Answer;
  }

  async reconcile(call: Omit<Call, 'atMs'>): Promise<Reconciled<Answer>> {
    const full = { ...call, atMs: performance.now() };
    this.asked.push(full);
    const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
    if (!answer) throw new Error('nobody was to be asked');
    return (await answer(full)) as Reconciled<Answer>;
  }
}

export interface ToolOptions {
  name?: string;
  effect?: 'read' | 'write';
  keyless?: boolean;
  scope?: 'run' | 'tenant';
  idempotent?: boolean;
  timeoutMs?: number;
  settleAfterMs?: number;
  reconcileForMs?: number;
  maxAttempts?: number;
  minDelayMs?: number;
  maxDelayMs?: number;
}

/** A tool over `{ key, n }` whose business key is `key`; a write is asked about where its script has answers. */
export function scripted(script: Script, options: ToolOptions & { asks?: boolean } = {}): AnyTool {
  const { name = 'act', effect = 'write', asks = false, minDelayMs = 5, maxDelayMs = 20 } = options;
  return tool({
    name,
    version: '1',
    effect,
    scope: options.scope,
    idempotent: options.idempotent,
    input: z.object({ key: z.string(), n: z.int() }),
    output: z.object({ id: z.string() }),
    ...(options.keyless ? {} : { key: ({ input }: { input: { key: string } }) => [input.key] }),
    timeoutMs: options.timeoutMs ?? 10_000,
    settleAfterMs: options.settleAfterMs,
    reconcileForMs: options.reconcileForMs,
    retry: { maxAttempts: options.maxAttempts ?? 3, minDelayMs, maxDelayMs },
    execute: (call: Omit<Call, 'atMs'>) => script.execute(call),
    ...(asks ? { reconcile: (call: Omit<Call, 'atMs'>) => script.reconcile(call) } : {}),
  } as never);
}

export interface ChartParts {
  name?: string;
  version?: number;
  events?: Record<string, EventSpec>;
  actors?: Record<string, AnyTool>;
  /** What `createMachine` takes; context starts as the input of the run unless it says otherwise. */
  config: object;
  context?: z.ZodType;
}

/** An agent named `chart` from a plain config, without the types that an author would have. */
export function chart(parts: ChartParts): AgentDefinition {
  const { name = 'chart', version = 1, events = {}, actors = {}, config, context } = parts;
  const machine = setup({ types: {}, actors: actors as never }).createMachine({
    id: name,
    context: ({ input }: { input: object }) => input,
    ...config,
  } as never) as unknown as AnyStateMachine;
  return defineAgent({
    name,
    version,
    machine,
    events: defineEvents(events),
    input: z.record(z.string(), z.json()),
    ...(context === undefined ? {} : { context }),
  } as never) as unknown as AgentDefinition;
}

/** An invoke of `src` with a fixed input. */
export function invoke(src: string, input: object, rest: object = {}): object {
  return { src, input: () => input, ...rest };
}

/** An assign of one field from the event. */
export function keep(field: string, of: (event: never, context: never) => unknown): never {
  return assign(({ event, context }: never) => ({ [field]: of(event, context) })) as never;
}

/** Keeps what the invoke ended with: an output's id or an error's code, appended to `field`. */
export function keepEnd(field: string): never {
  return keep(field, ({ output, error }: { output?: Answer; error?: { code: string } }, context) => {
    const before = (context as Record<string, unknown[]>)[field] ?? [];
    return [...before, error?.code ?? output?.id ?? null];
  });
}

export const none = z.object({});

export async function entriesOf(pawl: Spawned<AgentDefinition>['pawl'], runId: string): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const entry of pawl.history(runId)) entries.push(entry);
  return entries;
}

export function kindsOf(entries: LedgerEntry[], ...kinds: string[]): LedgerEntry[] {
  return entries.filter((entry) => kinds.includes(entry.kind));
}

export function contextOf(view: RunView): Record<string, Json> {
  return view.context as Record<string, Json>;
}

/** Resolves when `check` does not throw any more, or rejects with what it threw last after `timeoutMs`. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 5_000): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
    await pause(5);
  }
}

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

/** A promise and its resolve. */
export function gate<T = void>(): { opened: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {};
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Answers only when its signal aborts, with an error. */
export function untilAborted({ signal }: { signal: AbortSignal }): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });
}
