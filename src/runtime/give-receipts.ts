/** What came back under a lease that is gone is still a fact. */
import { messageOf } from '../errors.ts';
import type { Store } from '../persistence/store.ts';
import type { Logger } from './logger.ts';
import type { Ended } from './open-calls.ts';

/** Gives the receipts of writes to the store. One that cannot be stored is found out again, by reconcile or by a person. */
export async function giveReceipts(
  context: { store: Store; logger: Logger },
  runId: string,
  hand: readonly Ended[],
): Promise<void> {
  const { store, logger } = context;
  for (const ended of hand) {
    // A read is read again, an unfit value would be taken for a fit one, and an unknown outcome is no fact.
    if (ended.kind !== 'receipt' || ended.tool.effect === 'read') continue;
    if (ended.context.invalid || ended.receipt.outcome === 'unknown') continue;
    const { operationId, outcome } = ended.receipt;
    try {
      const stored = await store.receive(runId, ended.receipt);
      if (stored === 'conflict')
        logger.error('another outcome of an operation is stored', { runId, operationId, outcome });
    } catch (error) {
      logger.error('a receipt could not be stored', { runId, operationId, outcome, error: messageOf(error) });
    }
  }
}
