/** Which operations had an outcome that nobody knew for a while, and how each was found out: read from the ledgers. */
import type { LedgerEntry } from '../../src/index.ts';
import type { Kill } from './crash-plan.ts';

export interface UnknownOutcome {
  operationId: string;
  /** Where its worker was killed; `killed`: somewhere; `unanswered`: the provider gave no answer. */
  boundary: Kill['point'] | 'killed' | 'unanswered';
  /** `repeated`: nobody was asked; it was sent again under the same id, and answered. */
  resolution: 'happened' | 'did_not_happen' | 'refused' | 'repeated' | 'needs_human' | 'open';
}

/** The unknown outcomes of one run, in the order in which they came up. */
export function unknownOutcomes(entries: LedgerEntry[], kills: Kill[]): UnknownOutcome[] {
  const killedAt = new Map(kills.map(({ operationId, point }) => [operationId, point]));
  const found = new Map<string, UnknownOutcome>();
  const note = (operationId: string, boundary: UnknownOutcome['boundary']): UnknownOutcome => {
    const known = found.get(operationId);
    if (known) return known;
    const outcome = { operationId, boundary: killedAt.get(operationId) ?? boundary, resolution: 'open' } as const;
    found.set(operationId, outcome);
    return outcome;
  };
  const resolve = (operationId: string, resolution: UnknownOutcome['resolution']): void => {
    const known = found.get(operationId);
    if (known) found.set(operationId, { ...known, resolution });
  };

  for (const entry of entries) {
    const operationId = entry['operationId'];
    if (typeof operationId !== 'string') continue;
    switch (entry.kind) {
      case 'received':
        if (entry['outcome'] === 'unknown') note(operationId, 'unanswered');
        else if (found.get(operationId)?.resolution === 'open') resolve(operationId, 'repeated');
        break;
      case 'reconciled':
        note(operationId, 'killed');
        resolve(operationId, RESOLUTIONS.get(entry['answer']) ?? 'open');
        break;
      case 'escalated':
        note(operationId, 'killed');
        resolve(operationId, 'needs_human');
        break;
      default:
    }
  }
  return [...found.values()];
}

const RESOLUTIONS = new Map<unknown, UnknownOutcome['resolution']>([
  ['happened', 'happened'],
  ['absent', 'did_not_happen'],
  ['failed', 'refused'],
]);
