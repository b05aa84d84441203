import { test } from 'vitest';
import { memoryStore } from '../../src/persistence/memory/index.ts';
import { storeConformance } from '../../src/testing/conformance/store-conformance.ts';
import { movableClock } from './movable-clock.ts';

storeConformance({
  test,
  createStore() {
    const clock = movableClock();
    const store = memoryStore({ clock });
    return { store, advance: clock.advance, cleanup: () => store.close() };
  },
});
