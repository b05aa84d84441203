/** The store that keeps everything in this process: for tests, and the reference that the others are compared with. */
export { memoryStore, type MemoryStoreOptions } from './memory-store.ts';
