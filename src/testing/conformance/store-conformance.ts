/** The published conformance suite of the Store port: what every store must do, whatever keeps its bytes. */
import { commitSection } from './commits.ts';
import { inboxSection } from './inbox.ts';
import { leaseSection } from './leases.ts';
import { ledgerSection } from './ledger.ts';
import { limitSection } from './limits.ts';
import { operationSection } from './operations.ts';
import { recordSection } from './records.ts';
import { reservationSection } from './reservations.ts';
import { runSection } from './runs.ts';
import type { Check, ConformanceOptions } from './trial.ts';

export type { ConformanceOptions, ConformanceStore, ConformanceSupport } from './trial.ts';

const SECTIONS: Record<string, (check: Check) => void> = {
  runs: runSection,
  inbox: inboxSection,
  commits: commitSection,
  operations: operationSection,
  leases: leaseSection,
  records: recordSection,
  ledger: ledgerSection,
  reservations: reservationSection,
  limits: limitSection,
};

/**
 * Registers one test per claim, each with a store of its own.
 * @example
 * storeConformance({
 *   test,
 *   createStore: () => {
 *     const store = memoryStore();
 *     return { store, cleanup: () => store.close() };
 *   },
 * });
 */
export function storeConformance({ test, createStore, supports = {} }: ConformanceOptions): void {
  for (const [section, register] of Object.entries(SECTIONS)) {
    register((name, run) => {
      test(`${section}: ${name}`, async () => {
        const created = await createStore();
        const wait = async (ms: number): Promise<void> => {
          if (created.advance) created.advance(ms);
          else await new Promise((resolve) => setTimeout(resolve, ms));
        };
        try {
          await run({ ...created, supports, wait });
        } finally {
          await created.cleanup();
        }
      });
    });
  }
}
