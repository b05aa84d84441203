/** The stores every scenario runs on, each fresh and empty. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/clock.ts';
import { memoryStore } from '../../src/persistence/memory/index.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';

import type { Store } from '../../src/persistence/store.ts';

export interface TestStore {
  store: Store;
  /** The same data through another connection, as another process would see it. */
  again(): Store;
  /** The SQLite file; null in memory. */
  path: string | null;
  remove(): Promise<void>;
}

export interface StoreKind {
  name: string;
  open(clock?: Clock): TestStore;
}

export const STORES: StoreKind[] = [
  {
    name: 'memory',
    open(clock) {
      const store = memoryStore(clock ? { clock } : {});
      // Closing one runtime must not close what another still uses.
      const shared: Store = Object.assign(Object.create(store) as Store, { close: async () => {} });
      return { store: shared, again: () => shared, path: null, remove: () => store.close() };
    },
  },
  {
    name: 'sqlite',
    open(clock) {
      const folder = mkdtempSync(join(tmpdir(), 'pawl-'));
      const path = join(folder, 'pawl.db');
      const open = (): Store => sqliteStore(clock ? { path, clock } : { path });
      return {
        store: open(),
        again: open,
        path,
        remove: async () => rmSync(folder, { recursive: true, force: true }),
      };
    },
  },
];
