/**
 * The life of one operation as a statechart (DESIGN 3.2): what may follow what, whoever says so.
 *
 * The chart knows neither tool nor clock. Whether an absence may be believed, an attempt made or a write left alone is
 * decided by the runtime; the chart refuses what no reason could make right, such as leaving a written attempt.
 */
import { setup } from 'xstate';
import { PawlError } from '../errors.ts';
import type { OperationStatus } from '../records.ts';

const OPERATION_EVENTS = [
  /** An attempt is written. */
  'attempt',
  /** The key belongs to another owner for now. */
  'block',
  /** It is free again. */
  'unblock',
  /** Nobody waits for it any more, and it has not happened. */
  'withdraw',
  /** Nobody waits for it any more: a read or a decision in flight, which leaves nothing in the world. Never a write. */
  'abandon',
  /** The outcomes of a receipt, by `execute`, `reconcile` or a person. */
  'succeeded',
  'failed',
  'not_executed',
  'unknown',
  /** Proved absent after the last attempt: it is closed as it is. */
  'give_up',
  /** A new invocation means the same action: same id, attempt numbers go on. */
  'reopen',
  /** Its compensation is planned; done; or everything that could be tried was. */
  'compensate',
  'compensated',
  'escalate',
  /** A person lets it be asked again. */
  'release',
] as const;

export type OperationEvent = (typeof OPERATION_EVENTS)[number];

export const operationMachine = setup({
  types: { events: {} as { [E in OperationEvent]: { type: E } }[OperationEvent] },
}).createMachine({
  id: 'operation',
  initial: 'intended',
  states: {
    intended: {
      description: 'Stored, not attempted since.',
      on: {
        attempt: 'attempted',
        block: 'blocked',
        withdraw: 'withdrawn',
        succeeded: {
          target: 'succeeded',
          description:
            'A tenant key settled by its owner, or a late success of a reopened operation: facts outrank status.',
        },
        failed: {
          target: 'failed',
          description: 'A late refusal of a reopened operation is stored; no attempt may be written against it.',
        },
        escalate: {
          target: 'escalated',
          description: 'A compensation is never withdrawn: one that may not be attempted goes to a person.',
        },
      },
    },
    blocked: {
      description: 'Another owner, or an approval, is awaited.',
      on: {
        unblock: 'intended',
        withdraw: 'withdrawn',
        succeeded: { target: 'succeeded', description: 'The owner of the tenant key succeeded; its receipt is taken.' },
        failed: { target: 'failed', description: 'As in intended.' },
      },
    },
    attempted: {
      description: 'An attempt is written and has no receipt; however long the call takes, it is not unknown.',
      on: {
        succeeded: 'succeeded',
        failed: 'failed',
        not_executed: 'not_executed',
        unknown: { target: 'unknown', description: 'Its receipt says so, or its fence is old.' },
        abandon: 'withdrawn',
        escalate: {
          target: 'escalated',
          description:
            'An earlier attempt succeeded under this one and the provider does not dedupe; or the value is unfit.',
        },
      },
    },
    unknown: {
      description: 'It may have happened, and may still.',
      on: {
        attempt: {
          target: 'attempted',
          description: 'A read, or an idempotent write: performing again under the same id is how it is settled.',
        },
        succeeded: 'succeeded',
        failed: 'failed',
        not_executed: 'not_executed',
        unknown: { target: 'unknown', description: 'Asked again, and again without an answer.' },
        abandon: 'withdrawn',
        escalate: {
          target: 'escalated',
          description: 'Nobody can be asked, or nobody answered within reconcileForMs.',
        },
      },
    },
    not_executed: {
      description: 'Proved absent, for its attempts so far.',
      on: {
        attempt: 'attempted',
        withdraw: 'withdrawn',
        give_up: { target: 'not_executed', description: 'No attempts are left; the chart gets TOOL_NOT_EXECUTED.' },
        unknown: {
          target: 'unknown',
          description:
            'An absence believed inside the window allows another attempt only; to conclude, it is asked again.',
        },
        reopen: 'intended',
        succeeded: { target: 'succeeded', description: 'A late arrival; no later attempt stands against it.' },
        failed: { target: 'failed', description: 'A late refusal is as final as an early one.' },
        escalate: {
          target: 'escalated',
          description:
            'A late arrival after a later attempt of a tool that is not idempotent; an exhausted compensation.',
        },
      },
    },
    succeeded: {
      description: 'It stands in the world.',
      on: {
        compensate: 'compensating',
        escalate: {
          target: 'escalated',
          description: 'Nobody waits for it and it cannot be undone, or its value is unfit.',
        },
      },
    },
    failed: { type: 'final', description: 'Refused for good; the same action again is a new generation.' },
    withdrawn: {
      description: 'Left before any attempt, or after a proved absence.',
      on: {
        reopen: 'intended',
        succeeded: { target: 'succeeded', description: 'A late arrival: a stored receipt outranks the stored status.' },
        failed: { target: 'failed', description: 'A late refusal: a stored receipt outranks the stored status.' },
      },
    },
    compensating: {
      description: 'The operation that undoes it is open.',
      on: { compensated: 'compensated', escalate: 'escalated' },
    },
    compensated: { type: 'final', description: 'Undone; the same action again is a new generation.' },
    escalated: {
      description: 'Only a person, or a late fact, says how it ends.',
      on: {
        succeeded: 'succeeded',
        failed: 'failed',
        not_executed: 'not_executed',
        release: 'unknown',
        compensate: { target: 'compensating', description: 'Its compensation is tried again.' },
        compensated: { target: 'compensated', description: 'Its compensation was settled by a person.' },
        escalate: { target: 'escalated', description: 'Another fact for the same person.' },
      },
    },
  },
});

const TABLE = precompute();

/**
 * The status after `event`. Constant time.
 *
 * @throws {PawlError} OPERATION_ILLEGAL when the chart has no such edge: a fault of the caller, never of an author
 */
export function operationStatus(from: OperationStatus, event: OperationEvent): OperationStatus {
  const to = TABLE.get(from)?.get(event);
  if (to !== undefined) return to;
  const legal = [...(TABLE.get(from)?.keys() ?? [])];
  throw new PawlError(
    'OPERATION_ILLEGAL',
    `An operation that is '${from}' cannot take '${event}'; it takes ${legal.join(', ') || 'nothing more'}.`,
    { details: { from, event, legal } },
  );
}

function precompute(): ReadonlyMap<string, ReadonlyMap<string, OperationStatus>> {
  const statuses = Object.keys(operationMachine.states) as OperationStatus[];
  return new Map(
    statuses.map((from) => {
      const snapshot = operationMachine.resolveState({ value: from, context: {} });
      const edges = OPERATION_EVENTS.flatMap((type): [string, OperationStatus][] => {
        const [taken] = operationMachine.getTransitionData(snapshot, { type });
        const target = taken?.target?.[0]?.key;
        return target === undefined ? [] : [[type, target as OperationStatus]];
      });
      return [from, new Map(edges)];
    }),
  );
}
