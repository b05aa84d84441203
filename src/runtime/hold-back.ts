/** A poison run starves nobody: what seems to kill its workers waits, and in the end goes to a person. */
import type { Clock } from '../clock.ts';
import type { Logger } from './logger.ts';

/** Claims without a commit after which a run is suspected. */
const SUSPICIOUS_CLAIMS = 3;
const HOPELESS_CLAIMS = 20;

/**
 * A run whose claims end without a commit may be what kills its workers. It waits under its lease, longer each time, so
 * that the runs beside it get on. True after so many claims that a person has to look.
 */
export async function holdBack(
  context: { clock: Clock; leaseMs: number; logger: Logger },
  runId: string,
  fruitlessClaims: number,
): Promise<boolean> {
  const { clock, leaseMs, logger } = context;
  if (fruitlessClaims < SUSPICIOUS_CLAIMS) return false;
  const delayMs = Math.min(2 ** fruitlessClaims * 10, leaseMs / 4);
  logger.warn('a run was claimed again and again without a commit', { runId, claims: fruitlessClaims, delayMs });
  await clock.sleep(delayMs);
  return fruitlessClaims >= HOPELESS_CLAIMS;
}
