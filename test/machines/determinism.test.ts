import { assign, setup } from 'xstate';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { now, random, setAmbientTrap } from '../../src/machines/determinism.ts';
import { createDurableMachine } from '../../src/machines/durable-machine.ts';
import { eventStep, initialStep } from '../../src/machines/step.ts';
import { walk } from './machines.ts';

afterEach(() => setAmbientTrap(true));

const drawing = setup({
  types: {} as { context: { drawn: number[]; atMs: number }; events: { type: string } },
}).createMachine({
  id: 'draw',
  context: () => ({ drawn: [random()], atMs: now() }),
  on: {
    DRAW: {
      guard: () => random() >= 0,
      actions: assign({ drawn: () => [random(), random(), random()], atMs: () => now() }),
    },
  },
});

describe('now() and random()', () => {
  test('are fed by the step, and equal at every replay', () => {
    const machine = createDurableMachine(drawing);
    const start = initialStep(machine, null, { runId: 'r', sequence: 1, atMs: 77 });
    const at = { runId: 'r', sequence: 2, atMs: 1_234 };
    const once = eventStep(machine, start.snapshot, { type: 'DRAW' }, at).snapshot.context as {
      drawn: number[];
      atMs: number;
    };
    const again = eventStep(machine, start.snapshot, { type: 'DRAW' }, at).snapshot.context as typeof once;
    expect(once).toEqual(again);
    expect(once.atMs).toBe(1_234);
    expect(new Set(once.drawn).size).toBe(3);
  });

  test('other runs and other steps draw other numbers', () => {
    const draw = (runId: string, sequence: number) =>
      (
        initialStep(createDurableMachine(drawing), null, { runId, sequence, atMs: 0 }).snapshot.context as {
          drawn: number[];
        }
      ).drawn[0];
    const drawn = [draw('r', 1), draw('r', 2), draw('s', 1), draw('r1', 1), draw('r', 11)];
    expect(new Set(drawn).size).toBe(drawn.length);
    expect(drawn.every((number) => number !== undefined && number >= 0 && number < 1)).toBe(true);
  });

  test('the sequence of numbers is pinned: stored runs replay with it', () => {
    const { snapshot } = initialStep(createDurableMachine(drawing), null, { runId: 'pinned', sequence: 1, atMs: 0 });
    expect((snapshot.context as { drawn: number[] }).drawn[0]).toBe(0.12050876393914223);
  });

  test('are spread evenly enough', () => {
    const counts = Array.from({ length: 10 }, () => 0);
    const machine = createDurableMachine(drawing);
    for (let sequence = 0; sequence < 5_000; sequence++) {
      const { snapshot } = initialStep(machine, null, { runId: 'r', sequence, atMs: 0 });
      const bucket = Math.floor((snapshot.context as { drawn: number[] }).drawn[0]! * 10);
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 500)).toBeLessThan(100);
  });

  test('throw outside a step', () => {
    expect(() => now()).toThrow(expect.objectContaining({ code: 'IMPURE_MACHINE' }));
    expect(() => random()).toThrow(expect.objectContaining({ code: 'IMPURE_MACHINE' }));
  });
});

const sources: [string, () => unknown][] = [
  ['Date.now()', () => Date.now()],
  ['new Date()', () => new Date().getTime()],
  ['Date()', () => Date()],
  ['Math.random()', () => Math.random()],
  ['crypto.randomUUID()', () => crypto.randomUUID()],
  ['crypto.getRandomValues()', () => crypto.getRandomValues(new Uint8Array(1))[0]],
  ['performance.now()', () => performance.now()],
];

function impure(read: () => unknown) {
  return setup({ types: {} as { context: { value: unknown }; events: { type: string } } }).createMachine({
    id: 'impure',
    context: { value: 0 },
    on: {
      ASSIGN: { actions: assign({ value: () => read() }) },
      GUARD: { guard: () => read() !== undefined, actions: assign({ value: 1 }) },
      CAUGHT: {
        actions: assign({
          value: () => {
            try {
              return read();
            } catch {
              return 'caught';
            }
          },
        }),
      },
    },
  });
}

describe('the ambient trap', () => {
  test.each(sources)('%s inside a step is IMPURE_MACHINE, and works again after it', (source, read) => {
    const run = walk(impure(read));
    for (const type of ['ASSIGN', 'GUARD', 'CAUGHT']) {
      expect(() => run.send(type)).toThrow(
        expect.objectContaining({ code: 'IMPURE_MACHINE', message: expect.stringContaining(source) as string }),
      );
    }
    expect(run.context()).toEqual({ value: 0 });
    expect(read()).not.toBeUndefined();
  });

  test('dates made of data are allowed', () => {
    const run = walk(
      impure(() => new Date('2026-01-01T00:00:00Z').getUTCFullYear() + (new Date(0) instanceof Date ? 1 : 0)),
    );
    run.send('ASSIGN');
    expect(run.context()).toEqual({ value: 2027 });
  });

  test('it leaves fake timers as they are', () => {
    vi.useFakeTimers({ now: 5_000 });
    try {
      const run = walk(impure(() => 1));
      run.send('ASSIGN');
      expect(Date.now()).toBe(5_000);
      expect(() => walk(impure(() => Date.now())).send('ASSIGN')).toThrow(/Date\.now/);
    } finally {
      vi.useRealTimers();
    }
    expect(Math.abs(Date.now() - new Date().getTime())).toBeLessThan(100);
  });

  test('the console may look at the time', () => {
    const seen: unknown[] = [];
    const spy = vi.spyOn(console, 'log').mockImplementation((...args) => {
      seen.push(...args, Date.now() > 0);
    });
    const run = walk(impure(() => (console.log('looking'), 1)));
    run.send('ASSIGN');
    spy.mockRestore();
    expect(seen).toEqual(['looking', true]);
    expect(() => walk(impure(() => (console.debug, Math.random()))).send('ASSIGN')).toThrow(/Math\.random/);
  });

  test('what was kept from inside a step works after it', () => {
    const kept: { read?: () => unknown } = {};
    const keep = () => {
      const { random: chance } = Math;
      const { now: time } = Date;
      const [Dates, log] = [Date, console];
      kept.read = () => (log.group(), [chance(), time(), new Dates().getTime(), Dates().length, Math.random() < 1]);
      return 1;
    };
    walk(impure(keep)).send('ASSIGN');
    expect(kept.read?.()).toEqual([
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
      expect.any(Number),
      true,
    ]);
    expect(Date.now()).toBeGreaterThan(0);
  });

  test('it can be turned off', () => {
    setAmbientTrap(false);
    const run = walk(impure(() => Math.random() + Date.now() > 0));
    run.send('ASSIGN');
    expect(run.context()).toEqual({ value: true });
  });
});
