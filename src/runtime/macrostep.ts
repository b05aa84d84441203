/** One macrostep in a draft: step, chain the digest, carry out the effects. */
import { isPawlError, PawlError } from '../errors.ts';
import type { Effect } from '../machines/effects.ts';
import { chainDigest, toMachineState } from '../machines/snapshot.ts';
import { completionStep, eventStep, initialStep, type Step, type StepAt } from '../machines/step.ts';
import type { Completion, EntryCause, Fault, Json, JsonObject, Timer } from '../records.ts';
import { MAX_MACROSTEPS, type Draft } from './draft.ts';
import { leaveInvocation, placeInvocation } from './operations.ts';

/** Thrown when one commit would need more than `MAX_MACROSTEPS`. */
export class Runaway extends Error {}

/** The event a completion is reduced as; what the `transitioned` entry holds. */
export function completionEvent(id: string, completion: Completion): JsonObject {
  return 'error' in completion
    ? { type: `xstate.error.actor.${id}`, error: completion.error as unknown as Json, actorId: id }
    : { type: `xstate.done.actor.${id}`, output: completion.output, actorId: id };
}

/** Stores the initial macrostep in a draft whose record has no machine state yet. @throws STEP_THREW */
export function beginRun(draft: Draft, input: Json): void {
  const { durable } = draft.base.agent.definition;
  apply(draft, { type: 'xstate.init', input }, undefined, (at) => initialStep(durable, input, at));
}

/**
 * Reduces one event. Returns false, and changes nothing, when the chart takes no transition.
 * @throws STEP_THREW, IMPURE_MACHINE, and Runaway; the draft is then as before
 */
export function reduceEvent(draft: Draft, event: JsonObject & { type: string }, cause?: EntryCause): boolean {
  const { durable } = draft.base.agent.definition;
  return apply(draft, event, cause, (at) => eventStep(durable, draft.snapshot, event, at), false);
}

/**
 * Settles an invocation and reduces its completion: always a macrostep, taken by the chart or not.
 * A completion of an invocation that is no longer live is recorded as stale. Throws as `reduceEvent`.
 */
export function reduceCompletion(draft: Draft, completion: Completion): void {
  const { invocationId } = completion;
  const invocation = draft.record.invocations[invocationId];
  if (!invocation || draft.record.cancel !== null || draft.record.machine.status !== 'active') {
    draft.entry('stale', { invocationId }, { invocationId });
    return;
  }
  const { durable } = draft.base.agent.definition;
  const outcome = 'error' in completion ? { error: completion.error } : { output: completion.output };
  const event = completionEvent(invocation.id, completion);
  const cause: EntryCause = { invocationId };
  if (invocation.operationId !== undefined) cause.operationId = invocation.operationId;
  apply(
    draft,
    event,
    cause,
    (at) => completionStep(durable, draft.snapshot, invocation, outcome, at),
    true,
    invocationId,
  );
}

function apply(
  draft: Draft,
  event: JsonObject,
  cause: EntryCause | undefined,
  run: (at: StepAt) => Step,
  always = true,
  settles?: string,
): boolean {
  if (draft.macrosteps >= MAX_MACROSTEPS) throw new Runaway();
  const { record } = draft;
  draft.keepAsIs('invocations');
  const before = { machine: record.machine, invocations: record.invocations };
  const sequence = draft.sequence + 1;
  const step = run({ runId: record.runId, sequence, atMs: draft.nowMs });
  if (!step.applied && !always) return false;
  const machine = toMachineState(draft.base.agent.definition.durable, step.snapshot);

  draft.sequence = sequence;
  draft.macrosteps++;
  draft.snapshot = step.snapshot;
  record.machine = machine;
  if (settles !== undefined) delete draft.map('invocations')[settles];
  const entry: { [field: string]: Json } = {
    event,
    from: before.machine.value,
    to: machine.value,
    agentVersion: record.agentVersion,
  };
  draft.entry('transitioned', entry, cause);
  const transitioned = draft.entries.at(-1) as (typeof draft.entries)[number];
  carryOut(draft, step.effects);
  if (machine.status !== 'active') leaveMachine(draft);
  record.snapshotDigest = chainDigest(record.snapshotDigest, sequence === 1 ? null : before, {
    machine,
    invocations: record.invocations,
  });
  transitioned['snapshotDigest'] = record.snapshotDigest;
  return true;
}

function carryOut(draft: Draft, effects: readonly Effect[]): void {
  for (const effect of effects) {
    switch (effect.kind) {
      case 'stop':
        leaveInvocation(draft, effect.invocationId);
        break;
      case 'disarm':
        disarm(draft, effect.timerId);
        break;
      case 'start':
        start(draft, effect);
        break;
      case 'arm':
        arm(draft, effect);
        break;
      case 'send':
        if (effect.to === 'self') draft.follow.push({ kind: 'event', event: effect.event });
        else draft.entry('dropped', { event: effect.event, to: effect.to, reason: 'no_receiver' });
        break;
      case 'emit':
        draft.entry('emitted', { event: effect.event });
        break;
      case 'log':
        draft.logs.push({ label: effect.label, value: effect.value });
        break;
    }
  }
}

function start(draft: Draft, effect: Effect & { kind: 'start' }): void {
  if (effect.logic !== 'tool') {
    throw new PawlError(
      'STEP_THREW',
      `Run ${draft.record.runId} started ${effect.logic} '${effect.src}', which no runtime performs yet.`,
    );
  }
  draft.map('invocations')[effect.invocationId] = {
    invocationId: effect.invocationId,
    id: effect.id,
    src: effect.src,
    kind: effect.logic,
    input: effect.input,
    startedAtMs: draft.nowMs,
  };
  placeInvocation(draft, effect.invocationId);
}

function arm(draft: Draft, effect: Effect & { kind: 'arm' }): void {
  const timer: Timer = {
    id: effect.timerId,
    kind: effect.timer,
    dueAtMs: draft.nowMs + effect.delayMs,
    event: effect.event,
    armedAt: draft.sequence,
    ...(effect.to === undefined ? {} : { to: effect.to }),
  };
  draft.map('timers')[effect.timerId] = timer;
  draft.entry('timer_armed', { timerId: timer.id, dueAtMs: timer.dueAtMs });
}

function disarm(draft: Draft, timerId: string): void {
  if (!draft.record.timers[timerId]) return;
  delete draft.map('timers')[timerId];
  draft.entry('timer_cancelled', { timerId });
}

/** Nothing of a machine outlives it: its invocations are left and its timers disarmed. Also what a cancel does. */
export function leaveMachine(draft: Draft): void {
  for (const invocationId of Object.keys(draft.record.invocations)) leaveInvocation(draft, invocationId);
  for (const timerId of Object.keys(draft.record.timers)) disarm(draft, timerId);
}

/** What a throw from a step says, as a fault. Anything that is not from a step is thrown on. */
export function stepFault(error: unknown): Fault {
  if (isPawlError(error, 'STEP_THREW') || isPawlError(error, 'IMPURE_MACHINE')) {
    return { code: error.code, message: error.message };
  }
  throw error;
}
