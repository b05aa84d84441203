/** No event moves a run to where its chart does not lead: random sends against a plain XState actor. */
import assert from 'node:assert/strict';
import { describe, expect, test } from 'vitest';
import { assign, createActor, type AnyActor } from 'xstate';
import { z } from 'zod';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { LedgerEntry } from '../../src/records.ts';
import type { Verdict } from '../../src/runtime/deliver.ts';
import { chart, entriesOf, kindsOf, none } from './charts.ts';
import type { Pawl } from './desk.ts';
import { STORES } from './stores.ts';
import { openWorld } from './world.ts';

const payload = z.object({ n: z.int().min(0).max(9) });
const add = assign({ sum: ({ context, event }: never) => context['sum'] + event['n'] } as never);
const isSmall = ({ event }: never): boolean => event['n'] < 4;
const isRich = ({ context }: never): boolean => context['sum'] > 12;

/** Regions, shallow and deep history, guards on payload and context, a forbidden event, deferral, an end. */
const agent: AgentDefinition = chart({
  events: {
    A: payload,
    B: payload,
    C: payload,
    PAUSE: none,
    RESUME: none,
    JUMP: none,
    LATER: { schema: payload, whenIllegal: 'defer' },
    NOISE: { schema: none, whenIllegal: 'drop' },
    FINISH: none,
    PLAN: { schema: payload, from: ['model'] },
  },
  config: {
    initial: 'work',
    context: { sum: 0 },
    states: {
      work: {
        type: 'parallel',
        on: { PAUSE: 'paused', JUMP: { target: '#two', guard: isRich, actions: assign({ sum: 1 } as never) } },
        states: {
          left: {
            initial: 'one',
            states: {
              one: { on: { A: { target: 'two', guard: isSmall, actions: add } } },
              two: {
                id: 'two',
                initial: 'x',
                on: { A: 'one' },
                states: {
                  x: { on: { B: { target: 'y', actions: add } } },
                  y: { on: { A: undefined, B: 'x' } },
                },
              },
              shallow: { id: 'shallow', type: 'history' },
            },
          },
          right: {
            initial: 'off',
            states: {
              off: {
                on: {
                  B: [
                    { target: 'on', guard: isSmall },
                    { target: 'hot', guard: isRich },
                  ],
                },
              },
              on: { on: { C: { target: 'off', actions: add }, LATER: { actions: add } } },
              hot: { always: { target: 'off', guard: ({ context }: never) => context['sum'] % 2 === 0 } },
            },
          },
          deep: { id: 'deep', type: 'history', history: 'deep' },
        },
      },
      paused: {
        on: { RESUME: '#deep', C: { target: '#shallow', guard: isSmall }, FINISH: { target: 'end', guard: isRich } },
      },
      end: { type: 'final' },
    },
  },
});

const WHEN_ILLEGAL: Record<string, string> = { LATER: 'deferred', NOISE: 'dropped' };
const PAYLOADS = [{ n: 0 }, { n: 9 }];

interface Sent {
  eventId: string;
  event: { type: string; n?: number };
  verdict: Verdict;
}

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const TYPES = [...'AAAABBBBCC', 'PAUSE', 'RESUME', 'RESUME', 'JUMP', 'LATER', 'NOISE', 'PLAN', 'X'];

function randomEvent(random: () => number): Sent['event'] {
  const type = random() < 0.01 ? 'FINISH' : (TYPES[Math.floor(random() * TYPES.length)] ?? 'A');
  if (!['A', 'B', 'C', 'LATER', 'PLAN'].includes(type)) return { type };
  return { type, n: Math.floor(random() * (random() < 0.1 ? 20 : 10)) };
}

/** What the chart itself says, by an actor that never heard of Pawl. */
class Oracle {
  readonly #actor: AnyActor = createActor(agent.machine).start();
  readonly deferred: { eventId: string; event: Sent['event'] }[] = [];
  applied = 0;

  get state(): { value: unknown; context: unknown; done: boolean } {
    const { value, context, status } = this.#actor.getSnapshot();
    return { value, context, done: status === 'done' };
  }

  /** The verdict that is due. */
  take(eventId: string, event: Sent['event']): string {
    if (event.type === 'X') return 'unknown_event';
    if (event.type === 'PLAN') return 'forbidden';
    if (event.n !== undefined && event.n > 9) return 'invalid_payload';
    if (this.#actor.getSnapshot().status === 'done') return 'run_final';
    if (!this.#actor.getSnapshot().can(event)) {
      const policy = WHEN_ILLEGAL[event.type] ?? 'refused';
      if (policy === 'deferred') this.deferred.push({ eventId, event });
      return policy;
    }
    this.#apply(event);
    for (let index = this.#nextDeferred(); index >= 0; index = this.#nextDeferred()) {
      const [kept] = this.deferred.splice(index, 1);
      if (kept) this.#apply(kept.event);
    }
    return 'applied';
  }

  /** Types that the chart takes with some payload. */
  get allowed(): string[] {
    const snapshot = this.#actor.getSnapshot();
    if (snapshot.status !== 'active') return [];
    const types = ['A', 'B', 'C', 'PAUSE', 'RESUME', 'JUMP', 'LATER', 'NOISE', 'FINISH'];
    return types.filter((type) => PAYLOADS.some((some) => snapshot.can({ type, ...some })));
  }

  #apply(event: Sent['event']): void {
    this.applied++;
    this.#actor.send(event);
  }

  #nextDeferred(): number {
    const snapshot = this.#actor.getSnapshot();
    return snapshot.status === 'active' ? this.deferred.findIndex(({ event }) => snapshot.can(event)) : -1;
  }
}

/** Sends to one run until it is final or `count` events are sent; checks the state after each. */
async function drive(pawl: Pawl, runId: string, random: () => number, count: number): Promise<number> {
  const oracle = new Oracle();
  const sent: Sent[] = [];
  await pawl.start('chart', { runId, input: {} as never });
  while (sent.length < count) {
    const event = randomEvent(random);
    const eventId = `e${sent.length}`;
    const verdict = await pawl.send(runId, event as never, { eventId });
    sent.push({ eventId, event, verdict });
    const due = oracle.take(eventId, event);
    const what = `${runId} after ${sent.length} events, the last ${JSON.stringify(event)}`;
    const told = due === 'refused' ? ['forbidden', 'guard_rejected'] : [due];
    assert.ok(told.includes(verdict.reason ?? verdict.verdict), `${what}: ${JSON.stringify(verdict)}, not ${due}`);
    const { value, context, done } = oracle.state;
    // A run that is closed has no state to tell.
    if (due !== 'run_final') assert.deepEqual(verdict.state, value, what);
    for (const type of oracle.allowed) assert.ok(verdict.allowed.includes(type), `${what}: ${type} is not allowed`);
    if (sent.length % 3 === 0 || done) {
      const view = await pawl.view(runId);
      assert.deepEqual([view.state, view.context, view.status === 'done'], [value, context, done], what);
    }
    if (done && random() < 0.3) break;
  }
  checkLedger(await entriesOf(pawl, runId), sent, oracle);
  expect(await pawl.verify(runId)).toMatchObject({ ok: true, sequence: oracle.applied + 1 });
  return sent.length;
}

/** Each refusal is one entry with its reason; each transition but the first is an event that was sent. */
function checkLedger(entries: LedgerEntry[], sent: Sent[], oracle: Oracle): void {
  const refused = sent.filter(({ verdict }) => verdict.verdict === 'refused');
  const recorded = kindsOf(entries, 'refused').map(({ eventId, reason }) => [eventId, reason] as unknown);
  expect(recorded).toEqual(refused.map(({ eventId, verdict }) => [eventId, verdict.reason]));
  const moved = kindsOf(entries, 'transitioned').slice(1);
  expect(moved.length).toBe(oracle.applied);
  for (const { event, cause } of moved) {
    expect(sent.find(({ eventId }) => eventId === cause?.eventId)?.event).toEqual(event);
  }
}

describe.each(STORES)('on $name', (kind) => {
  const count = kind.name === 'memory' ? 10_000 : 500;

  test(`${count} random sends leave no run where its chart does not lead`, async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    process.stdout.write(`illegal events on ${kind.name}: SEED=${seed}\n`);
    const random = randomOf(seed);
    const world = openWorld<AgentDefinition>(kind, [agent]);
    const { pawl } = world.spawn({ leaseMs: 5_000, concurrency: 16 });
    let left = count;
    let runs = 0;
    const sender = async (): Promise<void> => {
      while (left > 0) {
        const size = Math.min(left, 1_250);
        left -= size;
        left += size - (await drive(pawl, `run-${runs++}`, randomOf(random() * 2 ** 31), size));
      }
    };
    await Promise.all(Array.from({ length: 3 }, sender));
    await world.close();
  }, 120_000);
});
