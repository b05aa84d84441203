/** A desk where one tool may be asked for again and again, and what tests do at it. */
import { expect } from 'vitest';
import { assign } from 'xstate';
import { z } from 'zod';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { Receipt } from '../../src/records.ts';
import type { RunView } from '../../src/runtime/view.ts';
import { NotExecuted, ToolFailure } from '../../src/tools/outcome.ts';
import type { AnyTool } from '../../src/tools/tool.ts';
import { chart, contextOf, keepEnd, none, type ChartParts } from './charts.ts';
import type { StoreKind } from './stores.ts';
import { openWorld, type Spawned, type World } from './world.ts';

/**
 * A desk where one tool may be asked for again and again: GO enters `acting` (again, if it is there), LEAVE gives up
 * waiting, END ends the run. `ends` collects what each invocation ended with.
 */
export function desk(
  act: AnyTool,
  parts: Partial<ChartParts> & { states?: object; on?: object } = {},
): AgentDefinition {
  const takeInput = assign({
    key: ({ event }: { event: { key: string } }) => event.key,
    n: ({ event }: { event: { n: number } }) => event.n,
  } as never);
  const { states = {}, on = {}, ...rest } = parts;
  const end = { target: 'idle', actions: keepEnd('ends') };
  return chart({
    ...rest,
    events: { GO: z.object({ key: z.string(), n: z.int() }), LEAVE: none, END: none, ...parts.events },
    actors: { act, ...parts.actors },
    config: {
      initial: 'idle',
      context: { key: '', n: 0, ends: [] },
      on,
      states: {
        idle: { on: { GO: { target: 'acting', actions: takeInput }, END: 'done' } },
        acting: {
          invoke: {
            src: 'act',
            input: ({ context: { key, n } }: { context: { key: string; n: number } }) => ({ key, n }),
            onDone: end,
            onError: end,
          },
          on: { LEAVE: 'idle', GO: { target: 'acting', reenter: true, actions: takeInput }, END: 'done' },
        },
        done: { type: 'final' },
        ...states,
      },
      ...parts.config,
    },
  });
}

export type Pawl = Spawned<AgentDefinition>['pawl'];

export const fails = (what: Error) => (): never => {
  throw what;
};
export const reset = fails(new Error('socket hang up'));
export const absent = fails(new NotExecuted('nothing was sent'));
export const refused = fails(new ToolFailure('the provider says no'));

export async function go(pawl: Pawl, key: string, n = 1, runId = 'r1'): Promise<void> {
  expect(await pawl.send(runId, { type: 'GO', key, n } as never)).toMatchObject({ verdict: 'applied' });
}

/** Waits until so many invocations have ended; gives what they ended with. */
export async function ends(pawl: Pawl, count: number, runId = 'r1'): Promise<unknown[]> {
  const reached = (view: RunView): boolean => (contextOf(view)['ends'] as unknown[]).length >= count;
  return contextOf(await pawl.wait(runId, { until: reached as never, timeoutMs: 5_000 }))['ends'] as unknown[];
}

export async function openDesk(
  kind: StoreKind,
  agent: AgentDefinition,
  options?: Parameters<World<AgentDefinition>['spawn']>[0],
): Promise<Spawned<AgentDefinition> & { world: World<AgentDefinition> }> {
  const world = openWorld(kind, [agent]);
  const spawned = world.spawn({ leaseMs: 2_000, ...options });
  const { pawl } = spawned;
  await pawl.start('chart', { runId: 'r1', input: {} as never });
  return { world, ...spawned };
}

/** Every run of these tests replays, and nothing keeps it from resting. */
export async function closeWell(world: World<AgentDefinition>, pawl: Pawl, ...runIds: string[]): Promise<void> {
  for (const runId of runIds.length === 0 ? ['r1'] : runIds) {
    expect(await pawl.verify(runId)).toEqual({ runId, ok: true, sequence: expect.any(Number) });
  }
  await world.close();
}

export async function waitStatus(pawl: Pawl, status: string, runId = 'r1'): Promise<RunView> {
  const reached = (view: RunView): boolean => (view.openOperations[0]?.status ?? 'none') === status;
  return (await pawl.wait(runId, { until: reached as never, timeoutMs: 5_000 })) as RunView;
}

export function receiptOf(operationId: string, attempt: number, outcome: Receipt['outcome'], id = 'late'): Receipt {
  const rest = outcome === 'succeeded' ? { output: { id } } : { error: { code: 'TOOL_FAILED', message: id } };
  return { operationId, attempt, outcome, via: 'execute', atMs: 1, ...rest };
}

/** Waits until the run needs a person for this reason. */
export async function needsHuman(pawl: Pawl, reason: string): Promise<RunView> {
  const view = (await pawl.wait('r1', {
    until: ((seen: RunView) => seen.status === 'needs_human') as never,
    timeoutMs: 5_000,
  })) as RunView;
  expect(view.error).toMatchObject({ code: reason.toUpperCase() });
  expect(view.next).toMatchObject({ kind: 'await_human' });
  expect(view.waitingFor).toContain(reason);
  return view;
}

/** Sends an event without a payload. */
export const send = (pawl: Pawl, type: string, waitMs = 5_000): ReturnType<Pawl['send']> =>
  pawl.send('r1', { type } as never, { waitMs });
