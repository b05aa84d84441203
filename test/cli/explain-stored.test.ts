/** `explain` of what a store may hold beside the crash boundaries: records edited by hand, as `load` would return them. */
import { expect, onTestFinished, test } from 'vitest';
import { explain } from '../../src/cli/explain.ts';
import type { StoredRun } from '../../src/persistence/store.ts';
import { memoryStore } from '../../src/persistence/memory/index.ts';
import type { Operation, RunRecord } from '../../src/records.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import { nextAction } from '../../src/runtime/finish.ts';
import { chargeTool, threeStepAgent } from '../runtime/agents.ts';
import { Provider } from '../runtime/provider.ts';

/** A run whose charge is in the middle of its first attempt, changed by `edit`. */
async function storedRun(
  edit: (record: RunRecord, operation: Operation, run: StoredRun) => void = () => {},
): Promise<{ run: StoredRun; operationId: string }> {
  const provider = new Provider();
  provider.modes.push('hang');
  const store = memoryStore();
  const pawl = createRuntime({
    agents: [threeStepAgent({ charge: chargeTool(provider, { timeoutMs: 60_000 }) })],
    store,
  });
  const worker = pawl.work();
  onTestFinished(async () => {
    await worker.stop({ graceMs: 0 });
    await pawl.close();
  });
  await pawl.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
  await pawl.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
  while (provider.requests === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  const run = structuredClone(await store.load('r1'));
  const record = run?.record;
  const [operation] = Object.values(record?.operations ?? {});
  if (!run || !record || !operation) throw new Error('no operation');
  edit(record, operation, run);
  record.next = nextAction(record);
  return { run, operationId: operation.operationId };
}

async function textOf(
  edit: Parameters<typeof storedRun>[0],
): Promise<{ text: string; operationId: string; said: ReturnType<typeof explain>['explanation'] }> {
  const { run, operationId } = await storedRun(edit);
  const said = explain(run).explanation;
  return { text: said.sentences.join('\n'), operationId, said };
}

test('an intent without an attempt has not happened and is performed', async () => {
  const { text, said } = await textOf((_, operation) => {
    Object.assign(operation, { status: 'intended', attempts: [], attemptCount: 0 });
  });
  expect(text).toContain('was never attempted, so it has not happened: a worker performs it.');
  expect(said.doNotRepeat).toEqual([]);
  expect(text).toContain('No write of this run has happened or may have happened.');
});

test('an intent of a stopped run is not performed before its release', async () => {
  const { text } = await textOf((record, operation) => {
    Object.assign(operation, { status: 'intended', attempts: [], attemptCount: 0 });
    Object.assign(record, {
      status: 'needs_human',
      escalation: { reason: 'runaway', message: 'More than 100 macrosteps.', atMs: 1 },
    });
  });
  expect(text).toContain('a worker performs it once the run is released');
  expect(text).toContain('pawl release r1 --by WHO --reason TEXT');
});

test('an unknown outcome is asked for, not before the time that is stored', async () => {
  const { text, operationId } = await textOf((_, operation, run) => {
    Object.assign(operation, { status: 'unknown', reason: 'socket hang up', notBeforeMs: run.nowMs + 90_000 });
  });
  expect(text).toContain('is not known (socket hang up): it may have happened.');
  expect(text).toMatch(new RegExp(`Ask the provider by operationId ${operationId}.*not before .* \\(in 2 min\\)`));
  expect(text).toContain(`pawl resolve r1 ${operationId}`);
});

test('an attempt that was not found and may still arrive is repeated under the same id only', async () => {
  const { text } = await textOf((_, operation) => {
    Object.assign(operation, { status: 'not_executed', soft: true, reason: 'no such refund' });
  });
  expect(text).toContain('may still arrive there; under the same id that is harmless');
  expect(text).toContain('nobody under another');
});

test('an attempt that was proved absent is performed again', async () => {
  const { text } = await textOf((_, operation) => {
    Object.assign(operation, { status: 'not_executed', soft: false, reason: 'HTTP 404' });
  });
  expect(text).toContain('was proved not to have happened (HTTP 404): a worker performs it again under the same id.');
});

test('a stored absence that is not reduced yet comes before the attempt it belongs to', async () => {
  const { text } = await textOf((_, { operationId }, run) => {
    run.facts.receipts[`${operationId}#1`] = {
      operationId,
      attempt: 1,
      outcome: 'not_executed',
      via: 'execute',
      atMs: 1,
    };
  });
  expect(text).toContain('not_executed) is stored and not yet reduced');
});

test('a stored refusal is not something to be careful about', async () => {
  const { text, said } = await textOf((_, { operationId }, run) => {
    const error = { code: 'TOOL_FAILED', message: 'card expired' };
    run.facts.receipts[operationId] = { operationId, attempt: 1, outcome: 'failed', error, via: 'execute', atMs: 1 };
  });
  expect(text).toContain('failed: card expired) is stored and not yet reduced');
  expect(said).toMatchObject({ next: { kind: 'reduce' }, doNotRepeat: [], lastConfirmedEffect: null });
});

test('an answer that does not fit: the effect is real, and a person gives the output', async () => {
  const { text, operationId } = await textOf((record, operation) => {
    Object.assign(operation, {
      status: 'escalated',
      evidence: { code: 'TOOL_OUTPUT_INVALID', message: 'id is missing' },
    });
    Object.assign(record, {
      status: 'needs_human',
      escalation: { reason: 'output_invalid', operationId: operation.operationId, atMs: 1 },
    });
  });
  expect(text).toContain('happened, but its answer does not fit the tool’s output');
  expect(text).toContain(`pawl resolve r1 ${operationId} --as succeeded --output JSON`);
  expect(text).not.toContain('pawl release');
  expect(text).toContain(`Do not repeat charge (operation ${operationId}): it happened`);
});

test('a query that never answered: resolve, or release to have it asked again', async () => {
  const { text, operationId } = await textOf((record, operation) => {
    Object.assign(operation, { status: 'escalated', reason: 'the provider could not say: 503' });
    Object.assign(record, {
      status: 'needs_human',
      escalation: { reason: 'unknown_exhausted', operationId: operation.operationId, atMs: 1 },
    });
  });
  expect(text).toContain('may have happened; its provider could not say what happened');
  expect(text).toContain(`pawl resolve r1 ${operationId} --as succeeded`);
  expect(text).toContain('have a worker ask again: pawl release r1 --by WHO --reason TEXT');
  expect(text).toContain('Do not repeat it.');
});

test('two attempts in conflict are told to a person', async () => {
  const { text } = await textOf((record, operation) => {
    Object.assign(operation, { status: 'escalated', recovery: 'human' });
    const { operationId } = operation;
    Object.assign(record, {
      status: 'needs_human',
      escalation: { reason: 'conflicting_attempts', operationId, atMs: 1 },
    });
  });
  expect(text).toContain('there may be two effects');
});

test('a cancelled run says that it settles what was attempted', async () => {
  const { text } = await textOf((record) => {
    record.cancel = { by: 'ann', reason: 'wrong order', atMs: 1_000 };
  });
  expect(text).toMatch(/ann cancelled it at 1970-.* \(wrong order\): no attempt is begun any more/);
});

test('a record that cannot be read: nothing is touched, and every write may have happened', async () => {
  const { run } = await storedRun();
  const unreadable: StoredRun = { ...run, record: null, unreadable: 'digest mismatch' };
  const { status, sentences, next } = explain(unreadable).explanation;
  const text = sentences.join('\n');
  expect({ status, kind: next.kind }).toEqual({ status: 'needs_human', kind: 'await_human' });
  expect(text).toContain('No worker touches it and no tool is called: digest mismatch.');
  expect(text).toContain('pawl history r1');
  expect(text).toContain('Take every write in its ledger as one that may have happened');
});

test('a run with many effects names the newest and counts the others', async () => {
  const { text, said } = await textOf((record) => {
    for (let at = 0; at < 30; at++) record.effects[`op_${at}`] = { tool: 'charge', atMs: at };
  });
  expect(said.doNotRepeat).toHaveLength(31);
  expect(text).toContain('21 earlier writes happened and must not be repeated either');
  expect(text).not.toContain('op_3)');
  expect(text).toContain('op_29)');
});

test('parallel states, timers, deferred events and waiting items are named', async () => {
  const { text } = await textOf((record, operation, run) => {
    delete record.operations[operation.operationId];
    Object.assign(record, { status: 'waiting' });
    record.machine.value = { payment: { refunding: 'trying' }, mail: 'idle' };
    record.timers['t1'] = { id: 't1', kind: 'after', dueAtMs: run.nowMs + 7_200_000, event: { type: 'x' }, armedAt: 1 };
    record.deferred = [
      { eventId: 'e1', by: null, position: 1, atMs: 1, body: { kind: 'event', event: { type: 'LATER' } } },
    ];
    run.facts.lease = null;
    run.waiting = 2;
  });
  expect(text).toContain('in state payment.refunding.trying + mail.idle');
  expect(text).toMatch(/Timer t1 \(after\) is due at .*, in 2 h\./);
  expect(text).toContain('1 deferred event(s) wait for a state that takes them: LATER.');
  expect(text).toContain('2 stored items of its inbox are not yet reduced');
  expect(text).toContain('No worker holds it');
});
