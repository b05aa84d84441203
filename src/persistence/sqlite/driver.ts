/**
 * The few calls that the store makes of a SQLite binding, and the three bindings behind them: `node:sqlite` where this
 * Node has it, else `libsql`, or a database that the caller opened. All are synchronous.
 */
import { PawlError } from '../../errors.ts';

export type SqlValue = null | number | string | Uint8Array;
/** Values in the order of the columns. Blobs arrive as bytes of one kind or another; see `hexOfBlob`. */
export type SqlRow = (null | number | string | Uint8Array | ArrayBuffer)[];

export interface SqlStatement {
  run(values: readonly SqlValue[]): { lastInsertRowid: number };
  get(values: readonly SqlValue[]): SqlRow | undefined;
  all(values: readonly SqlValue[]): SqlRow[];
}

export interface SqliteDriver {
  /** Runs statements without values and without rows. */
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
  close(): void;
}

/** What the store needs of a database opened by the caller: better-sqlite3, libsql and node:sqlite all fit. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): object;
  close(): unknown;
}

/** The statement of either binding. */
interface ForeignStatement {
  run(...values: unknown[]): { lastInsertRowid: number | bigint };
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  /** better-sqlite3 and libsql: rows as arrays. */
  raw?(isRaw: boolean): unknown;
  reader?: boolean;
}

/**
 * Opens a database file with the first binding that is there.
 * @throws MISSING_PACKAGE when this Node has no node:sqlite and libsql is not installed; whatever the binding throws
 */
export async function openDriver(path: string): Promise<SqliteDriver> {
  const native = await nodeSqlite();
  if (native) return driverOf(new native.DatabaseSync(path));
  const Database = await libsql();
  return driverOf(new Database(path));
}

/** Wraps a database of any of the three bindings. */
export function driverOf(database: SqliteDatabase): SqliteDriver {
  return {
    exec: (sql) => void database.exec(sql),
    prepare: (sql) => statementOf(database.prepare(sql)),
    close: () => void database.close(),
  };
}

function statementOf(prepared: object): SqlStatement {
  if (!isStatement(prepared)) throw new TypeError('database.prepare() returned no statement with run, get and all');
  // node:sqlite takes the values one by one; the others would take a single blob or null for the list itself.
  const takesList = prepared.raw !== undefined;
  if (prepared.raw && prepared.reader) prepared.raw(true);
  const args = (values: readonly SqlValue[]): readonly unknown[] => (takesList ? [values] : values);
  return {
    run: (values) => ({ lastInsertRowid: Number(prepared.run(...args(values)).lastInsertRowid) }),
    get(values) {
      const row = prepared.get(...args(values));
      return row === undefined || row === null ? undefined : rowOf(row);
    },
    all: (values) => prepared.all(...args(values)).map(rowOf),
  };
}

function isStatement(value: object): value is ForeignStatement {
  return 'run' in value && 'get' in value && 'all' in value;
}

/** node:sqlite gives objects whose keys are in the order of the columns. */
function rowOf(row: unknown): SqlRow {
  const values: SqlRow = Array.isArray(row) ? row : Object.values(Object(row));
  return values;
}

async function nodeSqlite(): Promise<{ DatabaseSync: new (path: string) => SqliteDatabase } | null> {
  // Not `import('node:sqlite')`: bundlers and Node 20 do not know the name.
  const name = 'node:sqlite';
  try {
    return await import(name);
  } catch {
    return null;
  }
}

async function libsql(): Promise<new (path: string) => SqliteDatabase> {
  try {
    const { default: Database } = await import('libsql');
    return Database;
  } catch (cause) {
    throw new PawlError('MISSING_PACKAGE', 'The SQLite store needs a driver. Run: npm install libsql', {
      details: { package: 'libsql' },
      cause,
    });
  }
}
