/** What the tests of this layer share: tools that cannot run, and steps with a counted sequence. */
import type { AnyStateMachine } from 'xstate';
import {
  createDurableMachine,
  type DurableMachine,
  type DurableMachineOptions,
} from '../../src/machines/durable-machine.ts';
import { createLogic, type DurableLogic } from '../../src/machines/logic.ts';
import { liveInvocation } from '../../src/machines/snapshot.ts';
import { completionStep, eventStep, initialStep, type LiveSnapshot, type Step } from '../../src/machines/step.ts';
import type { Fault, Json } from '../../src/records.ts';

/** A tool as far as charts can see it. */
export function fakeTool<TInput = unknown, TOutput = unknown>(
  name: string,
): DurableLogic<'tool', TInput, TOutput, null> {
  return createLogic<'tool', TInput, TOutput, null>({ kind: 'tool', name, definition: null });
}

export interface Walk {
  machine: DurableMachine;
  readonly snapshot: LiveSnapshot;
  readonly initial: Step;
  readonly sequence: number;
  send(type: string, payload?: { [key: string]: Json }): Step;
  complete(invocation: { id: string; invocationId: string }, completion: { output: Json } | { error: Fault }): Step;
  /** Ends the live child of that id. */
  done(id: string, output?: Json): Step;
  fail(id: string, error?: Fault): Step;
  state(): Json;
  context(): unknown;
}

/** Steps a machine warm; a step that throws leaves it where it is. */
export function walk(
  source: AnyStateMachine,
  options: DurableMachineOptions & { input?: Json; runId?: string; atMs?: number } = {},
): Walk {
  const machine = createDurableMachine(source, options);
  const runId = options.runId ?? 'run-1';
  const atMs = options.atMs ?? 1_000;
  let sequence = 1;
  const initial = initialStep(machine, options.input ?? null, { runId, sequence, atMs });
  let snapshot = initial.snapshot;
  const take = (step: Step): Step => {
    if (step.applied || step.snapshot !== snapshot) sequence++;
    snapshot = step.snapshot;
    return step;
  };
  const at = () => ({ runId, sequence: sequence + 1, atMs });
  const complete: Walk['complete'] = (invocation, completion) =>
    take(completionStep(machine, snapshot, invocation, completion, at()));
  const live = (id: string) => ({ id, invocationId: liveInvocation(snapshot, id) ?? 'none' });
  return {
    machine,
    initial,
    get snapshot() {
      return snapshot;
    },
    get sequence() {
      return sequence;
    },
    send: (type, payload = {}) => take(eventStep(machine, snapshot, { ...payload, type }, at())),
    complete,
    done: (id, output = null) => complete(live(id), { output }),
    fail: (id, error = { code: 'TOOL_FAILED', message: 'no' }) => complete(live(id), { error }),
    state: () => snapshot.value as Json,
    context: () => snapshot.context as unknown,
  };
}
