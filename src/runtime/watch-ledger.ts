/** The ledger of a run as it grows. */
import type { Store } from '../persistence/store.ts';
import type { LedgerEntry } from '../records.ts';
import type { Changes } from './changes.ts';
import { loadRun } from './deliver.ts';

/** A watcher looks again after this long, hint or not. */
const LOOK_AGAIN_MS = 60_000;

/** Yields each entry once, in order; ends when the run is closed or `signal` aborts. @throws RUN_NOT_FOUND */
export async function* watchLedger(
  store: Store,
  changes: Changes,
  runId: string,
  options: { fromSequence?: number; signal?: AbortSignal },
): AsyncGenerator<LedgerEntry> {
  const { signal } = options;
  let from: { fromSequence?: number; fromIndex?: number } = { fromSequence: options.fromSequence ?? 0 };
  const hasMore = async (): Promise<true | null> => {
    for await (const _entry of store.read(runId, { ...from, limit: 1 })) return true;
    return (await loadRun(store, runId)).facts.closed ? true : null;
  };
  for (;;) {
    // Before reading: what is written until a run is closed is then surely read.
    const { closed } = (await loadRun(store, runId)).facts;
    for await (const entry of store.read(runId, from)) {
      if (signal?.aborted) return;
      yield entry;
      from = { fromIndex: entry.index + 1 };
    }
    if (closed || signal?.aborted) return;
    await changes.until(runId, hasMore, LOOK_AGAIN_MS, signal);
    if (changes.closed) return;
  }
}
