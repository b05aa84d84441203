/** Records and events come back as they went in, whatever is in them. */
import assert from 'node:assert/strict';
import { encodeRecord, type WrittenRecord } from '../../persistence/record-text.ts';
import type { Json, RunRecord } from '../../records.ts';
import {
  claimRun,
  commitOk,
  createRun,
  ledgerOf,
  loadRun,
  sampleEvent,
  sampleReceipt,
  sampleRecord,
  type Check,
} from './trial.ts';

const HOSTILE: Record<string, Json> = {
  'unicode and emoji': 'żółć 漢字 \u{1F9BE} e\u0301 \u2028\u2029 \uFEFF',
  'NUL and control characters': 'a\0b\u0001\u001f\u007f',
  'quotes and backslashes': `'";--\\ \\u0000 \${x} %s ?1 :a @b $c {runs} ~~ ~0`,
  'keys of the prototype': JSON.parse('{"__proto__":{"x":1},"constructor":null,"toString":"t","hasOwnProperty":0}'),
  'keys like numbers': { '10': 'a', '9': 'b', '': 'empty', '-0': 0 },
  'numbers at the edges': [0, -1, 1e308, 5e-324, 2 ** 53 - 1, -(2 ** 53) + 1, 0.1],
  'nothing much': [null, true, false, '', [], {}],
  'empty arrays stay arrays': { a: [], b: [[], {}], c: {} },
  'text that looks packed': ['~', '~0', '~~', `~${'A'.repeat(43)}`, 'f'.repeat(64), '0'.repeat(64)],
  'deep nesting': nested(400),
};

export function recordSection(check: Check): void {
  for (const [name, value] of Object.entries(HOSTILE)) {
    check(`kept exactly, in record, event, entry and receipt: ${name}`, async ({ store }) => {
      const runId = await createRun(store);
      await store.accept(runId, sampleEvent('event-hostile', { value }));
      const claim = await claimRun(store, runId);
      const record = sampleRecord(runId, { value });
      const receipt = sampleReceipt('op-1', { output: value, error: { code: 'X', message: 'm', details: value } });
      const event = { type: 'DONE', output: value };
      await commitOk(store, claim, {
        record: { full: JSON.stringify(record) },
        receipts: [receipt],
        entries: [
          { sequence: 2, kind: 'received', atMs: 1, operationId: 'op-1', receipt },
          { sequence: 2, kind: 'transitioned', atMs: 2, event, value, cause: { operationId: 'op-1' } },
        ],
      });

      const run = await loadRun(store, runId);
      assert.deepEqual(run.record, record);
      assert.deepEqual(run.facts.receipts, { 'op-1': receipt });
      assert.deepEqual(claim.inbox[0]?.body, { kind: 'event', event: { type: 'GO', value } });
      const [, , received, transitioned] = await ledgerOf(store, runId);
      assert.deepEqual(received?.['receipt'], receipt);
      assert.deepEqual(transitioned?.['event'], event);
      assert.deepEqual(transitioned?.['value'], value);
      assert.deepEqual(transitioned?.cause, { operationId: 'op-1' });
      assert.equal(JSON.stringify(transitioned?.['value']), JSON.stringify(value));
      assert.deepEqual(await store.audit(runId), []);
    });
  }

  check('a record of 1 MiB is kept through load, patch and load', async ({ store }) => {
    const big = 'x\u{1F9BE}"'.repeat(150_000);
    const runId = await createRun(store, { runId: 'run-big' });
    let record: RunRecord = sampleRecord(runId, { big, step: 0 });
    let written: WrittenRecord | null = null;
    let claim = await claimRun(store, runId);
    for (let step = 1; step <= 4; step++) {
      record = { ...record, machine: { ...record.machine, context: { big, step } } };
      const encoded = encodeRecord(written, record, false);
      written = encoded;
      claim = await commitOk(store, claim, { record: encoded.text });
      assert.deepEqual(claim.record?.machine, record.machine);
    }
  });

  check('loading and storing again, a hundred times, changes nothing', async ({ store }) => {
    const value = JSON.stringify(HOSTILE);
    const context: Json = { hostile: JSON.parse(value) as Json };
    const runId = await createRun(store);
    let claim = await claimRun(store, runId);
    claim = await commitOk(store, claim, { record: { full: JSON.stringify(sampleRecord(runId, context)) } });
    for (let round = 0; round < 100; round++) {
      claim = await commitOk(store, claim, { record: { full: JSON.stringify(claim.record) } });
    }
    assert.deepEqual(claim.record, sampleRecord(runId, context));
    assert.equal(JSON.stringify(claim.record), JSON.stringify(sampleRecord(runId, context)));
  });

  check('what is stored is a copy: later changes of the caller’s objects do not reach it', async ({ store }) => {
    const runId = await createRun(store);
    const event = sampleEvent('event-shared', { list: [1] });
    const receipt = sampleReceipt('op-1', { output: [1] });
    await store.accept(runId, event);
    await store.receive(runId, receipt);
    const before = await claimRun(store, runId);
    Object.assign(event.body, { kind: 'cancel' });
    (receipt.output as Json[]).push(2);
    Object.assign(before.summary, { status: 'failed' });
    Object.assign(before.facts, { sequence: 99 });

    const after = await loadRun(store, runId);
    assert.deepEqual(after.facts.receipts['op-1']?.output, [1]);
    assert.equal(after.summary.status, 'running');
    assert.equal(after.facts.sequence, 1);
    assert.deepEqual(before.inbox[0]?.body, { kind: 'event', event: { type: 'GO', list: [1] } });
  });
}

function nested(depth: number): Json {
  let value: Json = 'bottom';
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { level: value };
  return value;
}
