/** How a server misbehaves at one request: drawn from the seed, so that the same seed gives the same demo. */
import { createHash } from 'node:crypto';

export const MISBEHAVIOURS = [
  'none',
  'refuse',
  'accept-timeout',
  'accept-reset',
  'slow',
  'late',
  'error-500',
  'query-down',
  'wrong-amount',
  'mix',
] as const;
export type Misbehaviour = (typeof MISBEHAVIOURS)[number];

export type Conduct = 'behave' | Exclude<Misbehaviour, 'none' | 'mix'>;
export type ReadConduct = 'behave' | 'slow' | 'error-500' | 'silent';

/** What a mix draws from beside refusing, which belongs to the order and not to the attempt. */
const MIXED = [
  'accept-timeout',
  'accept-reset',
  'slow',
  'late',
  'error-500',
  'query-down',
  'wrong-amount',
] as const satisfies Conduct[];

export interface ConductRule {
  misbehave: Misbehaviour;
  seed: number;
}

/** A number in [0, 1) that depends on nothing but the seed and the words. */
export function chance(seed: number, ...words: (string | number)[]): number {
  const digest = createHash('sha256')
    .update([seed, ...words].join('\n'))
    .digest();
  return digest.readUInt32BE(0) / 2 ** 32;
}

/**
 * What happens to the `attempt`-th request (from 1) to do something for a subject: an order, or a recipient.
 * `refuse` and `wrong-amount` concern a third of the subjects, so that the rest of the chart is reached as well;
 * a refused subject stays refused. `error-500` fails once or twice per subject, and always for one in 25.
 */
export function conductOf(rule: ConductRule, subject: string, attempt: number): Conduct {
  const { misbehave, seed } = rule;
  switch (misbehave) {
    case 'none':
      return 'behave';
    case 'refuse':
      return chance(seed, 'refuse', subject) < 1 / 3 ? 'refuse' : 'behave';
    case 'wrong-amount':
      return chance(seed, 'wrong', subject) < 1 / 3 ? 'wrong-amount' : 'behave';
    case 'error-500':
      return attempt <= failuresOf(seed, subject) ? 'error-500' : 'behave';
    case 'mix': {
      if (chance(seed, 'refuse', subject) < 0.05) return 'refuse';
      const draw = chance(seed, 'mix', subject, attempt) * 2;
      return draw < 1 ? 'behave' : (MIXED[Math.floor((draw - 1) * MIXED.length)] ?? 'behave');
    }
    default:
      return misbehave;
  }
}

/** What happens to the `attempt`-th reading of something. Readings fail at first and then work. */
export function readConductOf(rule: ConductRule, subject: string, attempt: number): ReadConduct {
  if (attempt > 1) return 'behave';
  const draw = chance(rule.seed, 'read', subject);
  switch (rule.misbehave) {
    case 'slow':
      return draw < 0.5 ? 'slow' : 'behave';
    case 'error-500':
      return draw < 0.25 ? 'error-500' : 'behave';
    case 'accept-timeout':
      return draw < 0.1 ? 'silent' : 'behave';
    case 'mix':
      return draw < 0.05 ? 'silent' : draw < 0.15 ? 'error-500' : draw < 0.25 ? 'slow' : 'behave';
    default:
      return 'behave';
  }
}

function failuresOf(seed: number, subject: string): number {
  const draw = chance(seed, 'failures', subject);
  return draw < 0.04 ? Number.POSITIVE_INFINITY : draw < 0.52 ? 1 : 2;
}
