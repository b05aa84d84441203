import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { memoryStore } from '../../src/persistence/memory/index.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { BothStores } from './equivalence/both-stores.ts';
import { command } from './equivalence/commands.ts';
import { movableClock } from './movable-clock.ts';

const seed = Number(process.env['PAWL_SEED'] ?? Date.now() % 2 ** 31);
const numRuns = Number(process.env['PAWL_RUNS'] ?? 250);

test(`SQLite answers any sequence of calls as the memory store does (PAWL_SEED=${seed})`, async () => {
  const sequences = fc.array(command, { minLength: 5, maxLength: 60, size: 'max' });
  const property = fc.asyncProperty(sequences, async (commands) => {
    const clock = movableClock(1_000_000);
    const reference = memoryStore({ clock });
    const other = sqliteStore({ path: ':memory:', clock });
    const both = new BothStores(reference, other, clock);
    await both.begin();
    for (const call of commands) await both.perform(call);
    await both.compareAll();
    await Promise.all([reference.close(), other.close()]);
  });
  const report = await fc.check(property, { seed, numRuns });

  expect(report.failed ? `${fc.defaultReportMessage(report)}\n${String(report.errorInstance)}` : 'holds').toBe('holds');
});
