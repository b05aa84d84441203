/**
 * A process of its own on a shared file: claims, commits and accepts until it is killed or has done its share. Prints a
 * line for each commit that the store said is durable.
 */
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { encodeRecord } from '../../src/persistence/record-text.ts';
import {
  AGENTS,
  commitAfter,
  freshId,
  sampleEvent,
  sampleReceipt,
  sampleRecord,
} from '../../src/testing/conformance/trial.ts';

const [path = '', name = '', rounds = '0'] = process.argv.slice(2);
const store = sqliteStore({ path });
for (let round = 0; round < Number(rounds); round++) {
  const claims = await store.claim({ workerId: name, leaseMs: 500, limit: 3, agents: AGENTS });
  await Promise.all(
    claims.map(async (claim) => {
      const { runId, facts } = claim;
      const previous = claim.record && { ...encodeRecord(null, claim.record, true), digest: claim.recordDigest };
      const record = sampleRecord(runId, { sequence: facts.sequence + 1, by: name });
      const commit = commitAfter(claim, {
        commitId: freshId(`${name}-${process.pid}`),
        record: encodeRecord(previous, record, facts.sequence % 5 === 0).text,
        position: facts.position + claim.inbox.length,
        receipts: [sampleReceipt(`op-${facts.sequence}`)],
        lease: { releaseDueAtMs: 0 },
        durability: 'disk',
      });
      const answer = await store.commit(commit);
      if (answer.kind === 'ok' && answer.durable) process.stdout.write(`ok ${runId} ${commit.sequence}\n`);
      await store.accept(runId, sampleEvent(freshId(`event-${name}-${process.pid}`)));
    }),
  );
}
await store.close();
