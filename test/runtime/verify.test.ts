/** verify names the run and the sequence of any damage to what is stored; a damaged record stops its own run only. */
import Database from 'libsql';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { LedgerEntry } from '../../src/records.ts';
import type { Verification } from '../../src/runtime/verify.ts';
import { eventually, Script, scripted } from './charts.ts';
import { absent, desk, ends, go, openDesk, refused, type Pawl } from './desk.ts';
import { STORES, type TestStore } from './stores.ts';
import { openWorld, type World } from './world.ts';

interface Row {
  row: number;
  first: number;
  sequence: number;
  at: number;
  link: number;
  body: string;
}

interface Numbers {
  run: number;
  sequence: number;
}

const sqlite = STORES.find(({ name }) => name === 'sqlite') as (typeof STORES)[number];

/** Finished, live and waiting runs with receipts of every outcome, retries, refusals, deferred events and many commits. */
async function fill(pawl: Pawl): Promise<void> {
  for (const runId of ['finished', 'live', 'long']) {
    await pawl.start('chart', { runId, input: {} as never });
    await pawl.send(runId, { type: 'NOBODY' } as never);
    await go(pawl, 'a', 1, runId);
    await ends(pawl, 1, runId);
    await go(pawl, 'b', 1, runId);
    await ends(pawl, 2, runId);
    await go(pawl, 'a', 1, runId);
    await ends(pawl, 3, runId);
  }
  for (let n = 0; n < 12; n++) {
    await go(pawl, `k${n}`, n, 'long');
    await ends(pawl, 4 + n, 'long');
  }
  await pawl.send('finished', { type: 'END' } as never);
  await pawl.wait('finished', { timeoutMs: 5_000 });
}

describe('damage to a SQLite file', () => {
  let world: World<AgentDefinition>;
  let pawl: Pawl;
  let file: InstanceType<typeof Database>;
  const numbers: Record<string, Numbers> = {};

  beforeAll(async () => {
    const script = new Script([absent, () => ({ id: 'a' }), refused]);
    world = openWorld<AgentDefinition>(sqlite, [desk(scripted(script))]);
    const working = world.spawn({ leaseMs: 5_000 }).pawl;
    await fill(working);
    await working.close();
    pawl = world.spawn({ idle: true }).pawl;
    file = new Database(world.test.path ?? '');
    for (const runId of ['finished', 'live', 'long']) {
      numbers[runId] = file.prepare('SELECT run, sequence FROM pawl_runs WHERE run_id = ?').get(runId) as Numbers;
    }
  });

  afterAll(async () => {
    file.close();
    await world.close();
  });

  const ledgerOf = (runId: string): Row[] =>
    file.prepare('SELECT * FROM pawl_ledger WHERE run = ? ORDER BY first').all(numbers[runId]?.run) as Row[];

  /** Verifies with the damage, then after it is mended; the runs beside it stay as they are. */
  async function damaged(runId: string, damage: () => void): Promise<Verification> {
    file.exec('BEGIN');
    const tables = ['pawl_runs', 'pawl_ledger', 'pawl_operations', 'pawl_records', 'pawl_patches'];
    for (const table of tables) file.exec(`CREATE TABLE keep_${table} AS SELECT * FROM ${table}`);
    damage();
    file.exec('COMMIT');
    const verification = await pawl.verify(runId);
    const others = await Promise.all(
      Object.keys(numbers)
        .filter((other) => other !== runId)
        .map((other) => pawl.verify(other)),
    );
    file.exec('BEGIN');
    for (const table of tables) {
      file.exec(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM keep_${table}; DROP TABLE keep_${table}`);
    }
    file.exec('COMMIT');
    expect(others.map(({ ok }) => ok)).toEqual([true, true]);
    expect(verification).toMatchObject({
      runId,
      ok: false,
      divergedAt: { sequence: expect.any(Number), what: expect.any(String) },
    });
    expect(verification.divergedAt?.sequence).toBeLessThanOrEqual(numbers[runId]?.sequence ?? 0);
    return verification;
  }

  const setBody = (row: number, body: string): void => {
    file.prepare('UPDATE pawl_ledger SET body = ? WHERE row = ?').run(body, row);
  };

  test('untouched runs are ok, and say up to which sequence', async () => {
    for (const [runId, { sequence }] of Object.entries(numbers)) {
      expect(await pawl.verify(runId)).toEqual({ runId, ok: true, sequence });
    }
    await expect(pawl.verify('nobody')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });

  test.each(['finished', 'live'])('a changed byte of any row of the %s run', async (runId) => {
    const rows = ledgerOf(runId);
    expect(rows.length).toBeGreaterThan(8);
    for (const [index, { row, body, sequence }] of rows.entries()) {
      const at = Math.floor((body.length * (index + 1)) / (rows.length + 1));
      const changed = body.slice(0, at) + (body[at] === '1' ? '2' : '1') + body.slice(at + 1);
      const { divergedAt } = await damaged(runId, () => setBody(row, changed));
      expect(divergedAt?.sequence).toBe(sequence);
    }
  });

  test('a changed byte that leaves the row readable JSON of another meaning', async () => {
    for (const { row, body } of ledgerOf('live')) {
      const changed = body
        .replace(/"(n|key|reason|type|message)":/, '"$1x":')
        .replace(/:(\d)/, ':9$1')
        .replace('succeeded', 'failed');
      if (changed !== body) await damaged('live', () => setBody(row, changed));
    }
  });

  test('a row whose sequence, time or place was changed', async () => {
    const [, , third] = ledgerOf('live');
    for (const column of ['sequence', 'at', 'first', 'link']) {
      await damaged('live', () =>
        file.exec(`UPDATE pawl_ledger SET ${column} = ${column} + 1 WHERE row = ${third?.row}`),
      );
    }
  });

  test('the last row removed, also with the count adjusted', async () => {
    for (const runId of ['finished', 'live', 'long']) {
      const last = ledgerOf(runId).at(-1) as Row;
      const remove = `DELETE FROM pawl_ledger WHERE row = ${last.row}`;
      const adjust = `UPDATE pawl_runs SET entry_count = ${last.first} WHERE run = ${numbers[runId]?.run}`;
      expect(await damaged(runId, () => file.exec(remove))).toMatchObject({
        divergedAt: { sequence: numbers[runId]?.sequence },
      });
      await damaged(runId, () => file.exec(`${remove}; ${adjust}`));
    }
  });

  test('a row in the middle or all of them removed', async () => {
    const rows = ledgerOf('long');
    await damaged('long', () => file.exec(`DELETE FROM pawl_ledger WHERE row = ${rows[10]?.row}`));
    await damaged('long', () => file.exec(`DELETE FROM pawl_ledger WHERE run = ${numbers['long']?.run}`));
  });

  test('two rows swapped', async () => {
    const rows = ledgerOf('long');
    for (const [one, other] of [
      [0, 1],
      [3, 4],
      [rows.length - 2, rows.length - 1],
    ] as const) {
      const [a, b] = [rows[one] as Row, rows[other] as Row];
      const { divergedAt } = await damaged('long', () => {
        setBody(a.row, b.body);
        setBody(b.row, a.body);
      });
      expect(divergedAt?.sequence).toBeLessThanOrEqual(b.sequence);
    }
  });

  test('a row of another run put in the place of one', async () => {
    const [own] = ledgerOf('live');
    const [foreign] = ledgerOf('finished');
    await damaged('live', () => setBody(own?.row ?? 0, `${foreign?.body} `));
  });

  test.each([false, true])('the record’s context edited; its digest recomputed: %s', async (isRecomputed) => {
    const { run } = numbers['live'] as Numbers;
    const { text } = file.prepare('SELECT full_text AS text FROM pawl_records WHERE run = ?').get(run) as {
      text: string;
    };
    const record = JSON.parse(text) as { machine: { context: { n: number }; value: string; tags: string[] } };
    for (const change of [
      () => (record.machine.context.n = 41),
      () => (record.machine.value = 'done'),
      () => record.machine.tags.push('planted'),
    ]) {
      change();
      const edited = JSON.stringify(record);
      const digest = createHash('sha256').update(edited).digest('hex');
      const verification = await damaged('live', () => {
        file.prepare('UPDATE pawl_records SET full_text = ? WHERE run = ?').run(edited, run);
        if (isRecomputed) file.prepare('UPDATE pawl_runs SET record_digest = ? WHERE run = ?').run(digest, run);
      });
      expect(verification.divergedAt).toMatchObject({ sequence: numbers['live']?.sequence });
    }
  });

  test('a receipt removed, turned or moved', async () => {
    const run = numbers['live']?.run;
    const operations = file
      .prepare('SELECT operation FROM pawl_operations WHERE run = ? AND outcome IS NOT NULL')
      .all(run) as { operation: number }[];
    expect(operations.length).toBeGreaterThan(0);
    for (const { operation } of operations) {
      const where = `WHERE operation = ${operation}`;
      await damaged('live', () => file.exec(`DELETE FROM pawl_operations ${where}`));
      await damaged('live', () =>
        file.exec(
          `UPDATE pawl_operations SET outcome = NULL, receipt_row = NULL, receipt_place = NULL, facts = 0 ${where}`,
        ),
      );
      await damaged('live', () => file.exec(`UPDATE pawl_operations SET outcome = 1 - outcome ${where}`));
      await damaged('live', () => file.exec(`UPDATE pawl_operations SET receipt_row = receipt_row + 1 ${where}`));
    }
  });
});

describe.each(STORES)('what a store may say on $name', (kind) => {
  /** A store that was tampered with behind its own digests: what it reads is changed on the way. */
  function lying(
    store: Store,
    lies: { entry?: (entry: LedgerEntry) => LedgerEntry | null; receipts?: boolean },
  ): Store {
    return new Proxy(store, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        if (typeof value !== 'function') return value;
        if (property === 'receipt' && lies.receipts === false) return async () => null;
        if (property !== 'read' || !lies.entry) return value.bind(target) as unknown;
        const change = lies.entry;
        return async function* read(...args: Parameters<Store['read']>): AsyncGenerator<LedgerEntry> {
          for await (const entry of target.read(...args)) {
            const changed = change(entry);
            if (changed) yield changed;
          }
        };
      },
    });
  }

  async function verifyWith(
    test: TestStore,
    agent: AgentDefinition,
    lies: Parameters<typeof lying>[1],
  ): Promise<Verification> {
    const world = openWorld<AgentDefinition>({ name: 'again', open: () => test }, [agent]);
    const { pawl } = world.spawn({ idle: true, store: lying(test.again(), lies), leave: true });
    return pawl.verify('r1');
  }

  test('the steps are run again: entries, intents and receipts must agree with them', async () => {
    const agent = desk(scripted(new Script()));
    const { world, pawl } = await openDesk(kind, agent);
    await go(pawl, 'k', 3);
    await ends(pawl, 1);
    await pawl.send('r1', { type: 'END' } as never);
    await pawl.wait('r1', { timeoutMs: 5_000 });
    const check = (lies: Parameters<typeof lying>[1]): Promise<Verification> => verifyWith(world.test, agent, lies);
    expect(await check({})).toMatchObject({ ok: true, sequence: 4 });
    const of = (kindOf: string, sequence: number, change: object | null) => (entry: LedgerEntry) =>
      entry.kind === kindOf && entry.sequence === sequence ? change && ({ ...entry, ...change } as LedgerEntry) : entry;
    const other = { type: 'GO', key: 'k', n: 4 };
    expect(await check({ entry: of('transitioned', 2, { event: other }) })).toMatchObject({
      divergedAt: { sequence: 2 },
    });
    expect(await check({ entry: of('transitioned', 2, { snapshotDigest: '0' }) })).toMatchObject({
      divergedAt: { sequence: 2 },
    });
    expect(await check({ entry: of('transitioned', 2, { event: { type: 'NOBODY' } }) })).toMatchObject({
      divergedAt: { sequence: 2 },
    });
    expect(await check({ entry: of('transitioned', 3, null) })).toMatchObject({ divergedAt: { sequence: 4 } });
    expect(await check({ entry: of('transitioned', 4, null) })).toMatchObject({ divergedAt: { sequence: 3 } });
    expect(await check({ entry: of('intended', 2, { input: { key: 'other', n: 3 } }) })).toMatchObject({
      divergedAt: { sequence: 2 },
    });
    expect(await check({ entry: of('intended', 2, { operationId: 'op_other' }) })).toMatchObject({
      divergedAt: { sequence: 2 },
    });
    expect(await check({ receipts: false })).toMatchObject({ ok: false, divergedAt: { sequence: 2 } });
    await world.close();
  });
});

describe('a damaged record on sqlite', () => {
  test('stops its run alone: bytes unchanged, no tool called, shown as needs_human; mended, it goes on', async () => {
    const script = new Script();
    const agent = desk(scripted(script));
    const world = openWorld<AgentDefinition>(sqlite, [agent]);
    const outside = world.spawn({ idle: true }).pawl;
    for (const runId of ['bad', 'good']) {
      await outside.start('chart', { runId, input: {} as never });
      await outside.send(runId, { type: 'GO', key: runId, n: 1 } as never, { waitMs: 0 });
    }
    const file = new Database(world.test.path ?? '');
    const read = (): string =>
      (
        file
          .prepare(`SELECT full_text AS text FROM pawl_records JOIN pawl_runs USING (run) WHERE run_id = 'bad'`)
          .get() as { text: string }
      ).text;
    const write = (text: string): void => {
      file
        .prepare(`UPDATE pawl_records SET full_text = ? WHERE run = (SELECT run FROM pawl_runs WHERE run_id = 'bad')`)
        .run(text);
    };
    const whole = read();
    for (const text of [whole.replace('"idle"', '"idol"'), whole.slice(0, -10), '', 'null']) {
      write(text);
      const { pawl } = world.spawn({ leaseMs: 2_000, leave: true });
      await eventually(async () => expect(await pawl.view('bad')).toMatchObject({ status: 'needs_human' }));
      expect(await pawl.view('bad')).toMatchObject({
        error: { code: 'RECORD_UNREADABLE' },
        next: { kind: 'await_human' },
        waitingFor: ['record_unreadable'],
        inbox: { waiting: 1 },
      });
      await eventually(async () => {
        const { runs } = await pawl.list({ status: 'needs_human' });
        expect(runs.map(({ runId }) => runId)).toEqual(['bad']);
      });
      expect((await ends(pawl, 1, 'good')).length).toBe(1);
      expect(read()).toBe(text);
      expect(script.calls.filter(({ input }) => input.key === 'bad')).toEqual([]);
      expect(await pawl.verify('bad')).toMatchObject({
        ok: false,
        divergedAt: { what: expect.stringContaining('record') },
      });
      expect(await pawl.verify('good')).toMatchObject({ ok: true });
      await expect(pawl.send('bad', { type: 'LEAVE' } as never)).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
      await expect(pawl.cancel('bad', { by: 'ann', reason: 'x' })).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
      const said = { as: 'failed', by: 'ann', evidence: 'x' } as const;
      await expect(pawl.resolve('bad', 'op_1', said)).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
      await pawl.close();
    }
    write(whole);
    const mended = world.spawn({ idle: true, leaseMs: 2_000 }).pawl;
    await mended.drive('bad', { until: 'idle', timeoutMs: 5_000 });
    expect(await ends(mended, 1, 'bad')).toEqual(['ok']);
    expect(await mended.verify('bad')).toMatchObject({ ok: true });
    file.close();
    await world.close();
  });

  test('whose state its machine does not know is the same: nothing is guessed', async () => {
    const script = new Script();
    const agent = desk(scripted(script));
    const world = openWorld<AgentDefinition>(sqlite, [agent]);
    const outside = world.spawn({ idle: true }).pawl;
    await outside.start('chart', { runId: 'r1', input: {} as never });
    await outside.send('r1', { type: 'GO', key: 'k', n: 1 } as never, { waitMs: 0 });
    const file = new Database(world.test.path ?? '');
    const { text } = file.prepare('SELECT full_text AS text FROM pawl_records').get() as { text: string };
    const edited = text.replace('"value":"idle"', '"value":"idol"');
    const digest = createHash('sha256').update(edited).digest('hex');
    file.prepare('UPDATE pawl_records SET full_text = ?').run(edited);
    file.prepare('UPDATE pawl_runs SET record_digest = ?').run(digest);
    const { pawl } = world.spawn({ leaseMs: 2_000 });
    await eventually(async () => {
      const { runs } = await pawl.list({ status: 'needs_human' });
      expect(runs.map(({ runId }) => runId)).toEqual(['r1']);
    });
    expect(await pawl.verify('r1')).toMatchObject({ ok: false });
    expect(script.calls).toEqual([]);
    const after = file.prepare('SELECT full_text AS text FROM pawl_records').get() as { text: string };
    expect(after.text).toBe(edited);
    file.close();
    await world.close();
  });
});
