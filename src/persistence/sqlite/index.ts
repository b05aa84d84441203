/** The store on a SQLite file: the embedded default. Needs `node:sqlite` (Node 22 and later) or the package `libsql`. */
export { sqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';
export type { SqliteDatabase } from './driver.ts';
