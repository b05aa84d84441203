/**
 * One letter for each name that ledger rows hold often. Part of the stored format: the lists may only grow at their
 * ends. Names that are not in them are written in full.
 */
import type { EntryKind, Receipt } from '../../records.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

const KINDS: readonly EntryKind[] = [
  'started',
  'accepted',
  'refused',
  'deferred',
  'dropped',
  'joined',
  'withdrawn',
  'blocked',
  'conflict',
  'compacted',
  'transitioned',
  'intended',
  'attempted',
  'received',
  'reconciled',
  'proposed',
  'approval_requested',
  'approval_decided',
  'approval_invalidated',
  'timer_armed',
  'timer_fired',
  'timer_cancelled',
  'artifact',
  'spent',
  'stale',
  'emitted',
  'child_started',
  'child_finished',
  'migrated',
  'cancel_requested',
  'compensated',
  'escalated',
  'resolved',
  'released',
  'forked',
  'finished',
];

const FIELDS: readonly string[] = [
  'cause',
  'eventId',
  'invocationId',
  'timerId',
  'operationId',
  'event',
  'from',
  'to',
  'agentVersion',
  'snapshotDigest',
  'receipt',
  'attempt',
  'outcome',
  'via',
  'tool',
  'input',
  'generation',
  'type',
  'body',
  'by',
  'position',
  'reason',
  'message',
  'status',
  'output',
  'dueAtMs',
  'key',
  'inputDigest',
  'requestId',
  'verdict',
  'random',
  'fence',
];

const OUTCOMES: readonly Receipt['outcome'][] = ['succeeded', 'failed', 'not_executed', 'unknown'];
const VIAS: readonly Receipt['via'][] = ['execute', 'reconcile', 'resolve'];

/** Names and their letters, both ways. */
export interface Alphabet<T extends string> {
  letterOf(name: T): string | undefined;
  /** Throws when no name has the letter: the row is damaged or of a newer version. */
  nameOf(letter: string): T;
}

function alphabet<T extends string>(names: readonly T[]): Alphabet<T> {
  const letters = new Map<T, string>(names.map((name, index) => [name, LETTERS.charAt(index)]));
  const byLetter = new Map<string, T>(names.map((name, index) => [LETTERS.charAt(index), name]));
  return {
    letterOf: (name) => letters.get(name),
    nameOf(letter) {
      const name = byLetter.get(letter);
      if (name === undefined) throw new TypeError(`the ledger row has an unknown letter ${JSON.stringify(letter)}`);
      return name;
    },
  };
}

export const kinds = alphabet(KINDS);
export const fields = alphabet(FIELDS);
export const outcomes = alphabet(OUTCOMES);
export const vias = alphabet(VIAS);
