/** A little history that uses every table, as a list of calls; and all that can be read of it, for comparison. */
import { encodeRecord, type WrittenRecord } from '../../src/persistence/record-text.ts';
import type { Claim, Store } from '../../src/persistence/store.ts';
import type { Commit } from '../../src/records.ts';
import {
  AGENTS,
  collect,
  commitAfter,
  firstCommit,
  sampleEvent,
  sampleReceipt,
  sampleRecord,
  INPUT_DIGEST,
} from '../../src/testing/conformance/trial.ts';

export const BUSY_RUNS = ['run-a', 'run-b', 'run-c'];

/** Each call is one transaction. `limit` bounds the number of steps. */
export async function* busyHistory(store: Store, steps: number): AsyncGenerator<string> {
  await store.nowMs();
  for (const runId of BUSY_RUNS) {
    await store.create(firstCommit(runId, { commitId: `${runId}-create` }));
    yield `create ${runId}`;
  }
  const claims = await store.claim({ workerId: 'w', leaseMs: 60_000, limit: 3, agents: AGENTS });
  yield 'claim';
  let written: (WrittenRecord | null)[] = [null, null, null];
  for (let step = 1; step <= steps; step++) {
    await store.accept('run-a', sampleEvent(`event-${step}`, { step }));
    yield `accept ${step}`;
    await store.receive('run-b', sampleReceipt(`op-b-${step}`, { outcome: 'not_executed' }));
    yield `receive ${step}`;
    const next: WrittenRecord[] = [];
    const commits = await Promise.all(
      claims.map(async (claim, place) => {
        const encoded = encodeRecord(written[place] ?? null, sampleRecord(claim.runId, { step }), step % 4 === 0);
        next[place] = encoded;
        return busyCommit(store, claim, step, encoded.text);
      }),
    );
    await Promise.all(commits.map((commit) => store.commit(commit)));
    written = next;
    yield `three commits ${step}`;
  }
  for (const claim of claims) {
    await store.release(claim.lease, { dueAtMs: 1 });
    yield `release ${claim.runId}`;
  }
}

async function busyCommit(store: Store, claim: Claim, step: number, record: Commit['record']): Promise<Commit> {
  const run = await store.load(claim.runId);
  if (!run) throw new Error(`${claim.runId} is gone`);
  const [operation, previous] = [`op-${step}`, `op-${step - 1}`];
  const isFirst = step === 1;
  return commitAfter(run, {
    commitId: `${claim.runId}-${step}`,
    record,
    position: run.facts.position + run.waiting,
    keys: [{ keyDigest: `key-${step}`, operationId: operation, generation: 1, inputDigest: INPUT_DIGEST }],
    attempts: [{ operationId: operation, attempt: 1 }],
    receipts: isFirst ? [] : [sampleReceipt(previous, { output: { step } })],
    closes: isFirst ? [] : [{ operationId: previous, status: 'succeeded', attempts: 1, inputDigest: INPUT_DIGEST }],
    verdicts: [{ eventId: `event-${step}`, verdict: { verdict: 'applied', sequence: step + 1, state: null } }],
    lease: { keepMs: 60_000 + step },
  });
}

/** Everything that can be read of the runs, as one text; leases and due times included. */
export async function dumpOf(store: Store): Promise<string> {
  const runs = await Promise.all(
    BUSY_RUNS.map(async (runId) => {
      const run = await store.load(runId);
      const read = { entries: await collect(store.read(runId)), receipts: await collect(store.receipts(runId)) };
      const verdicts = await Promise.all([1, 2, 3, 4].map((step) => store.verdict(runId, `event-${step}`)));
      return { run: run && { ...run, nowMs: 0 }, ...read, verdicts, audit: await store.audit(runId) };
    }),
  );
  return JSON.stringify({ runs, due: await store.due(10) });
}
