/** Sends a commit until it is answered: the same one again, so that a lost answer is found out by its id. */
import type { Clock } from '../clock.ts';
import { isPawlError, messageOf } from '../errors.ts';
import type { Store } from '../persistence/store.ts';
import type { Commit, CommitResult } from '../records.ts';
import type { Logger } from './logger.ts';

const RESEND_MS = 100;

/** Gives up after three leases without an answer, or when the worker must go. @throws what the store threw last */
export async function sendCommit(
  context: { store: Store; clock: Clock; leaseMs: number; logger: Logger },
  commit: Commit,
  mustGo: () => boolean,
): Promise<CommitResult> {
  const { clock, leaseMs, store, logger } = context;
  const giveUpMs = clock.monotonicMs() + 3 * leaseMs;
  for (;;) {
    try {
      return await store.commit(commit);
    } catch (error) {
      if ((isPawlError(error) && !error.retryable) || clock.monotonicMs() > giveUpMs || mustGo()) throw error;
      logger.warn('a commit was not answered and is sent again', { runId: commit.runId, error: messageOf(error) });
      await clock.sleep(RESEND_MS);
    }
  }
}
