/** The package's entries together, as `loadPackage` gives them. */
export type Pawl = typeof import('../src/index.ts') &
  typeof import('../src/persistence/sqlite/index.ts') &
  typeof import('../src/persistence/memory/index.ts');
