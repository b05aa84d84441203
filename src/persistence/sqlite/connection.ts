/** Opening a SQLite file as a store: settings, schema, and waiting while another process has it. */
import { accessSync, constants, existsSync } from 'node:fs';
import { systemClock } from '../../clock.ts';
import { PawlError } from '../../errors.ts';
import { Database } from './database.ts';
import { driverOf, openDriver, type SqliteDatabase } from './driver.ts';
import { migrate } from './schema.ts';
import { isBusy, toStoreError } from './sqlite-errors.ts';

export interface ConnectionOptions {
  path: string | null;
  database: SqliteDatabase | null;
  /** `disk`: each transaction is synced. `process`: it survives a killed process, not a loss of power. */
  durability: 'disk' | 'process';
  namespace: string;
  busyTimeoutMs: number;
  /** For messages. */
  place: string;
}

/**
 * Opens and migrates. Nothing is left open when it fails.
 * @throws STORE_UNREACHABLE, STORE_CORRUPT, STORE_READ_ONLY, STORE_BUSY, STORE_NEWER, MISSING_PACKAGE
 */
export async function openConnection(options: ConnectionOptions): Promise<Database> {
  let database: Database | null = null;
  try {
    const driver = options.database ? driverOf(options.database) : await openDriver(options.path ?? ':memory:');
    database = new Database(driver, options.namespace);
    const opened = database;
    await whileBusy(options, () => configure(opened, options.durability));
    await whileBusy(options, () => migrate(opened, options.place));
    return opened;
  } catch (error) {
    if (!options.database) database?.close();
    throw readOnlyFile(options) ?? toStoreError(error, options.place);
  }
}

/** SQLite cannot open the log of a file that may not be written, and calls that by other names. */
function readOnlyFile({ path, place }: ConnectionOptions): PawlError | null {
  if (path === null || !existsSync(path)) return null;
  try {
    accessSync(path, constants.W_OK);
    return null;
  } catch {
    return new PawlError('STORE_READ_ONLY', `The store ${place} refused: this process may not write its file.`, {
      details: { store: place },
    });
  }
}

/**
 * Repeats `attempt` while the store is busy, without holding the event loop, until `busyTimeoutMs` is over.
 * @throws STORE_BUSY then; any other error of SQLite as the store's code
 */
export async function whileBusy<T>(options: { busyTimeoutMs: number; place: string }, attempt: () => T): Promise<T> {
  const deadlineMs = systemClock.monotonicMs() + options.busyTimeoutMs;
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 25)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || systemClock.monotonicMs() >= deadlineMs) throw toStoreError(error, options.place);
    }
    await systemClock.sleep(pauseMs);
  }
}

function configure(database: Database, durability: 'disk' | 'process'): void {
  // SQLite's own waiting would hold the event loop.
  database.get('PRAGMA busy_timeout = 0');
  // A file that may not be written stays in the mode it has; the first write then says STORE_READ_ONLY.
  if (database.get('PRAGMA journal_mode')?.[0] !== 'wal') database.get('PRAGMA journal_mode = WAL');
  database.exec(`PRAGMA synchronous = ${durability === 'disk' ? 'FULL' : 'NORMAL'}`);
  database.exec('PRAGMA foreign_keys = OFF');
  database.get('PRAGMA wal_autocheckpoint = 0');
}
