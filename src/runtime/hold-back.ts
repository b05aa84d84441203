/** A poison run starves nobody: what seems to kill its workers waits, and in the end goes to a person. */
import type { Clock } from '../clock.ts';
import type { Logger } from './logger.ts';

/** Claims without a commit after which a run is suspected. */
const SUSPICIOUS_CLAIMS = 3;
/** Far more than a storm of restarts from outside gives to one run. */
const HOPELESS_CLAIMS = 100;

/**
 * A run whose claims end without a commit may be what kills its workers. It waits a little under its lease, longer each
 * time and by chance, so that the runs beside it get on while a worker that is killed from outside still gets on with it.
 * True after so many claims that a person has to look.
 */
export async function holdBack(
  context: { clock: Clock; leaseMs: number; logger: Logger; random(): number },
  runId: string,
  fruitlessClaims: number,
): Promise<boolean> {
  const { clock, leaseMs, logger } = context;
  if (fruitlessClaims < SUSPICIOUS_CLAIMS) return false;
  const delayMs = context.random() * Math.min(2 ** (fruitlessClaims - SUSPICIOUS_CLAIMS) * 20, leaseMs / 10);
  logger.warn('a run was claimed again and again without a commit', { runId, claims: fruitlessClaims, delayMs });
  await clock.sleep(delayMs);
  return fruitlessClaims >= HOPELESS_CLAIMS;
}
