import { describe, expect, test } from 'vitest';
import { operationMachine, operationStatus, type OperationEvent } from '../../src/machines/operation.ts';
import type { OperationStatus } from '../../src/records.ts';

const EDGES: Record<OperationStatus, Partial<Record<OperationEvent, OperationStatus>>> = {
  intended: {
    attempt: 'attempted',
    block: 'blocked',
    withdraw: 'withdrawn',
    succeeded: 'succeeded',
    failed: 'failed',
    escalate: 'escalated',
  },
  blocked: { unblock: 'intended', withdraw: 'withdrawn', succeeded: 'succeeded', failed: 'failed' },
  attempted: {
    succeeded: 'succeeded',
    failed: 'failed',
    not_executed: 'not_executed',
    unknown: 'unknown',
    abandon: 'withdrawn',
    escalate: 'escalated',
  },
  unknown: {
    attempt: 'attempted',
    succeeded: 'succeeded',
    failed: 'failed',
    not_executed: 'not_executed',
    unknown: 'unknown',
    abandon: 'withdrawn',
    escalate: 'escalated',
  },
  not_executed: {
    attempt: 'attempted',
    withdraw: 'withdrawn',
    give_up: 'not_executed',
    unknown: 'unknown',
    reopen: 'intended',
    succeeded: 'succeeded',
    failed: 'failed',
    escalate: 'escalated',
  },
  succeeded: { compensate: 'compensating', escalate: 'escalated' },
  failed: {},
  withdrawn: { reopen: 'intended', succeeded: 'succeeded', failed: 'failed' },
  compensating: { compensated: 'compensated', escalate: 'escalated' },
  compensated: {},
  escalated: {
    succeeded: 'succeeded',
    failed: 'failed',
    not_executed: 'not_executed',
    release: 'unknown',
    compensate: 'compensating',
    compensated: 'compensated',
    escalate: 'escalated',
  },
};

const statuses = Object.keys(EDGES) as OperationStatus[];
const events = operationMachine.events as OperationEvent[];

test('the chart has exactly the statuses and events of the table, and starts as intended', () => {
  expect(Object.keys(operationMachine.states).toSorted()).toEqual([...statuses].toSorted());
  const used = new Set(statuses.flatMap((status) => Object.keys(EDGES[status])));
  expect([...events].toSorted()).toEqual([...used].toSorted());
  expect(operationMachine.config.initial).toBe('intended');
});

const pairs = statuses.flatMap((from) => events.map((event) => ({ from, event, to: EDGES[from][event] })));

test.each(pairs.filter(({ to }) => to !== undefined))('$from takes $event and is $to', ({ from, event, to }) => {
  expect(operationStatus(from, event)).toBe(to);
});

test.each(pairs.filter(({ to }) => to === undefined))('$from refuses $event', ({ from, event }) => {
  const legal = expect.arrayContaining(Object.keys(EDGES[from]));
  const refusal = expect.objectContaining({ code: 'OPERATION_ILLEGAL', details: { from, event, legal } });
  expect(() => operationStatus(from, event)).toThrow(refusal);
});

test('an event or a status that does not exist is refused', () => {
  expect(() => operationStatus('intended', 'toString' as OperationEvent)).toThrow(/cannot take/);
  expect(() => operationStatus('constructor' as OperationStatus, 'attempt')).toThrow(/cannot take/);
});

/** All statuses that can follow `from` without passing through one of `without`. */
function reachable(from: OperationStatus, without: OperationStatus[] = []): Set<OperationStatus> {
  const seen = new Set<OperationStatus>([from]);
  for (const status of seen) {
    for (const to of Object.values(EDGES[status])) if (!without.includes(to)) seen.add(to);
  }
  return seen;
}

describe('what the design promises of the chart as a whole', () => {
  test('every status can be reached', () => {
    expect([...reachable('intended')].toSorted()).toEqual([...statuses].toSorted());
  });

  test('a refusal and a compensation are the only ends', () => {
    expect(statuses.filter((status) => Object.keys(EDGES[status]).length === 0)).toEqual(['failed', 'compensated']);
  });

  test('a written attempt is left as withdrawn only through a proved absence or by abandon, which is for reads', () => {
    for (const status of ['attempted', 'unknown'] as const) {
      expect(() => operationStatus(status, 'withdraw')).toThrow(/cannot take/);
      const edges = Object.entries(EDGES[status]).filter(([, to]) => to === 'withdrawn');
      expect(edges).toEqual([['abandon', 'withdrawn']]);
    }
  });

  test('what stands in the world leaves it only by compensation or through a person', () => {
    expect([...reachable('succeeded', ['escalated'])].toSorted()).toEqual(['compensated', 'compensating', 'succeeded']);
  });

  test('nothing is attempted out of escalated without a person having proved its absence or released it', () => {
    expect(reachable('escalated', ['not_executed', 'unknown']).has('attempted')).toBe(false);
  });
});
