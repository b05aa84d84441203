/** Calls of the Store port as data, drawn at random: few ids, so that they meet each other often. */
import * as fc from 'fast-check';
import type { Durability } from '../../../src/records.ts';

const run = fc.integer({ min: 0, max: 2 });
const key = fc.integer({ min: 0, max: 1 });
const generation = fc.integer({ min: 1, max: 2 });
const operation = fc.record({ key, generation });
const outcome = fc.constantFrom('succeeded', 'failed', 'not_executed', 'unknown' as const);
const receipt = fc.record({ operation, outcome, attempt: fc.integer({ min: 1, max: 2 }), output: fc.jsonValue() });
const event = fc.integer({ min: 0, max: 3 });
const dueIn = fc.constantFrom(null, -5, 0, 50);
const closeStatus = fc.constantFrom('succeeded', 'failed', 'not_executed', 'withdrawn', 'compensated' as const);

/** What a commit says that its sender got wrong, mostly nothing. */
const mistake = fc.constantFrom(
  ...Array<'none'>(12).fill('none'),
  'fence' as const,
  'after' as const,
  'sequence' as const,
  'position' as const,
  'base' as const,
  'beyondInbox' as const,
);

const commitParts = fc.record({
  mistake,
  steps: fc.integer({ min: 0, max: 2 }),
  consumed: fc.integer({ min: 0, max: 2 }),
  record: fc.constantFrom('patch', 'patch', 'full', 'garbage' as const),
  keys: fc.array(fc.record({ operation, knownAttempts: fc.constantFrom(undefined, undefined, 1, 2) }), {
    maxLength: 1,
  }),
  receipts: fc.array(receipt, { maxLength: 2 }),
  attempts: fc.array(operation, { maxLength: 1 }),
  closes: fc.array(fc.record({ operation, status: closeStatus }), { maxLength: 1 }),
  verdicts: fc.array(event, { maxLength: 1 }),
  entries: fc.integer({ min: 0, max: 3 }),
  status: fc.constantFrom('running', 'waiting', 'needs_human' as const),
  keepMs: fc.constantFrom(20, 100, 1_000, null),
  dueIn,
  close: fc.boolean(),
  durability: fc.constantFrom<Durability[]>('process', 'disk', { replicas: 1 }),
});

/** How far back among the claims or commits so far, around and around; mostly the last ones. */
const held = fc.oneof({ weight: 3, arbitrary: fc.nat({ max: 2 }) }, fc.nat({ max: 20 }));
export const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      run,
      dueIn,
      close: fc.constantFrom(false, false, false, true),
      agent: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('accept' as const),
      run,
      event,
      isRefused: fc.constantFrom(false, false, false, true),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('claim' as const),
      limit: fc.integer({ min: 1, max: 3 }),
      leaseMs: fc.constantFrom(10, 500),
      agents: fc.nat({ max: 2 }),
      named: fc.option(run),
    }),
  },
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('commit' as const), held, parts: commitParts }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('commitAgain' as const), held }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('receive' as const), run, receipt }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('renew' as const),
      held,
      leaseMs: fc.constantFrom(5, 500),
      after: fc.nat({ max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), held, dueIn }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('markUnreadable' as const), held }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(1, 15, 200) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('reserve' as const), run, key, intent: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      run,
      key,
      intent: fc.integer({ min: 1, max: 3 }),
      receipt: fc.option(receipt),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase' as const), run }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('list' as const),
      limit: fc.integer({ min: 1, max: 3 }),
      blocked: fc.option(fc.boolean()),
      status: fc.option(fc.constantFrom('running', 'waiting', 'needs_human' as const)),
    }),
  },
);

export type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;
export type CommitParts = typeof commitParts extends fc.Arbitrary<infer P> ? P : never;
export type DrawnReceipt = typeof receipt extends fc.Arbitrary<infer R> ? R : never;
export type DrawnOperation = typeof operation extends fc.Arbitrary<infer O> ? O : never;
