import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { busyHistory, BUSY_RUNS, dumpOf } from './busy-run.ts';
import { movableClock } from './movable-clock.ts';
import { observedDatabase } from './observed-database.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** What a process killed now would leave: the files as they are, without their locks. */
function copyFiles(from: string, to: string): void {
  copyFileSync(from, to);
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`);
}

async function dumpAt(path: string): Promise<string> {
  const store = sqliteStore({ path, clock: movableClock() });
  const dump = await dumpOf(store);
  await store.close();
  return dump;
}

test('killed before any single statement, the store has all of a call or nothing, and its digests hold', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'live.db');
  const database = observedDatabase(path);
  const store = sqliteStore({ database, clock: movableClock() });
  const states = [await dumpOf(store)];
  const kills: { after: number; sql: string; file: string }[] = [];
  const watch = (): void => {
    database.onStatement = (sql) => {
      if (/^\s*(SELECT|PRAGMA)/.test(sql)) return;
      const file = join(folder.path, `kill-${kills.length}.db`);
      copyFiles(path, file);
      kills.push({ after: states.length - 1, sql, file });
    };
  };
  watch();
  for await (const call of busyHistory(store, 5)) {
    database.onStatement = () => {};
    states.push(await dumpOf(store));
    expect(call).not.toBe('');
    watch();
  }
  database.onStatement = () => {};
  await store.close();
  database.close();

  expect(kills.length).toBeGreaterThan(200);
  for (const { after, sql, file } of kills) {
    const dump = await dumpAt(file);
    const isBefore = dump === states[after];
    expect(
      isBefore || dump === states[after + 1],
      `killed before ${sql} of call ${after}: neither before nor after`,
    ).toBe(true);
    expect(dump.match(/"audit":\[\]/g)).toHaveLength(BUSY_RUNS.length);
  }
  folder.remove();
});

test('a log torn at any byte gives back one of the states before it', async () => {
  const folder = temporaryFolder();
  const path = join(folder.path, 'live.db');
  const store = sqliteStore({ path, clock: movableClock() });
  const states = [await dumpOf(store)];
  const before = statSync(path).mtimeMs;
  for await (const call of busyHistory(store, 3)) if (call) states.push(await dumpOf(store));
  const torn = join(folder.path, 'torn.db');
  copyFiles(path, torn);
  const [main, log] = [readFileSync(torn), readFileSync(`${torn}-wal`)];
  // A checkpoint in between would make the log alone no history; it only comes to an idle store.
  const isWhole = statSync(path).mtimeMs === before;
  await store.close();

  let last = -1;
  for (let cut = 0; isWhole && cut <= 40; cut++) {
    const file = join(folder.path, `torn-${cut}.db`);
    writeFileSync(file, main);
    writeFileSync(`${file}-wal`, log.subarray(0, Math.floor((log.length * cut) / 40)));
    const state = states.indexOf(await dumpAt(file));
    // Before the first transaction the file has no tables: that is an empty store too.
    expect(state, `cut at ${cut} of 40`).toBeGreaterThanOrEqual(Math.max(0, last));
    last = state;
  }
  expect(isWhole ? last : states.length - 1).toBe(states.length - 1);
  folder.remove();
});
