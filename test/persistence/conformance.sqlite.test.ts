import { join } from 'node:path';
import { test } from 'vitest';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import type { Store } from '../../src/persistence/store.ts';
import { storeConformance } from '../../src/testing/conformance/store-conformance.ts';
import { movableClock } from './movable-clock.ts';
import { temporaryFolder } from './temporary-folder.ts';

storeConformance({
  test,
  supports: { secondProcess: true, reopen: true, durability: ['process', 'disk'] },
  createStore() {
    const clock = movableClock();
    const folder = temporaryFolder();
    const stores: Store[] = [];
    const open = (): Store => {
      const store = sqliteStore({ path: join(folder.path, 'pawl.db'), clock });
      stores.push(store);
      return store;
    };
    const store = open();
    return {
      store,
      second: open,
      async reopen() {
        await store.close();
        return open();
      },
      advance: clock.advance,
      async cleanup() {
        for (const opened of stores) await opened.close();
        folder.remove();
      },
    };
  },
});
