/** What happens to a run in one step of a walk. */
import type { Fault, Json } from '../../../src/records.ts';
import type { OurRun } from './our-run.ts';
import { EVENTS, type WalkStep } from './recipe.ts';

export type Input =
  | { kind: 'event'; event: { type: string; [key: string]: Json } }
  | { kind: 'completion'; id: string; invocationId: string; completion: { output: Json } | { error: Fault } };

export type CompletionInput = Extract<Input, { kind: 'completion' }>;

/** Null when the walk asks for what the run does not have now. A timer that fires is no longer armed. */
export function toInput(step: WalkStep, ours: OurRun): Input | null {
  switch (step.kind) {
    case 'event':
      return { kind: 'event', event: { type: EVENTS[step.event] as string, x: step.payload } };
    case 'timer': {
      const armed = [...ours.timers];
      const [id, timer] = armed[step.which % Math.max(armed.length, 1)] ?? [];
      if (id === undefined || timer === undefined) return null;
      ours.timers.delete(id);
      return timer.to === 'self' ? { kind: 'event', event: timer.event as { type: string } } : null;
    }
    case 'done':
    case 'fail': {
      const live = Object.values(ours.invocations);
      const invocation = live[step.which % Math.max(live.length, 1)];
      if (invocation === undefined) return null;
      const completion =
        step.kind === 'done' ? { output: { ok: step.which } } : { error: { code: 'TOOL_FAILED', message: 'no' } };
      return { kind: 'completion', id: invocation.id, invocationId: invocation.invocationId, completion };
    }
    case 'stale': {
      // One whose id is live again under another invocation: the case that a name cannot tell apart.
      const live = new Set(Object.values(ours.invocations).map(({ id }) => id));
      const old = ours.gone.filter(({ id }) => live.has(id));
      const stale = old[step.which % Math.max(old.length, 1)];
      if (stale === undefined) return null;
      return {
        kind: 'completion',
        id: stale.id,
        invocationId: stale.invocationId,
        completion: { output: { stale: true } },
      };
    }
  }
}

export function isStale(input: Input, ours: OurRun): input is CompletionInput {
  return input.kind === 'completion' && ours.invocations[input.invocationId] === undefined;
}

export function completionEvent(input: CompletionInput): { type: string; [key: string]: Json } {
  const { id, completion } = input;
  return 'error' in completion
    ? { type: `xstate.error.actor.${id}`, error: completion.error as unknown as Json, actorId: id }
    : { type: `xstate.done.actor.${id}`, output: completion.output, actorId: id };
}

export function describe(input: Input): string {
  return input.kind === 'event' ? JSON.stringify(input.event) : `${input.id} ${JSON.stringify(input.completion)}`;
}
