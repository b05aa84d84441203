/** One connection: statements prepared once each, tables of one namespace, values as the schema stores them. */
import type { SqliteDriver, SqlRow, SqlStatement, SqlValue } from './driver.ts';

export class Database {
  readonly #driver: SqliteDriver;
  readonly #namespace: string;
  /** By use: with libsql 0.5 a `get` after an `all` on one statement gives back a row of the `all`. */
  readonly #statements = {
    run: new Map<string, SqlStatement>(),
    get: new Map<string, SqlStatement>(),
    all: new Map<string, SqlStatement>(),
  };

  constructor(driver: SqliteDriver, namespace: string) {
    this.#driver = driver;
    this.#namespace = namespace;
  }

  /** In all SQL, `{runs}` stands for the table or index `runs` of this namespace. */
  exec(sql: string): void {
    this.#driver.exec(this.#named(sql));
  }

  run(sql: string, values: readonly SqlValue[] = []): number {
    return this.#statement('run', sql).run(values).lastInsertRowid;
  }

  get(sql: string, values: readonly SqlValue[] = []): SqlRow | undefined {
    return this.#statement('get', sql).get(values);
  }

  all(sql: string, values: readonly SqlValue[] = []): SqlRow[] {
    return this.#statement('all', sql).all(values);
  }

  /** Reads that see one moment, whatever other processes commit meanwhile. Not to be nested. */
  snapshot<T>(read: () => T): T {
    this.#driver.exec('BEGIN');
    try {
      return read();
    } finally {
      this.#driver.exec('COMMIT');
    }
  }

  close(): void {
    for (const statements of Object.values(this.#statements)) statements.clear();
    this.#driver.close();
  }

  #statement(use: 'run' | 'get' | 'all', sql: string): SqlStatement {
    let statement = this.#statements[use].get(sql);
    if (!statement) {
      statement = this.#driver.prepare(this.#named(sql));
      this.#statements[use].set(sql, statement);
    }
    return statement;
  }

  #named(sql: string): string {
    return sql.replaceAll(/\{(\w+)\}/g, `"${this.#namespace}_$1"`);
  }
}

const HEX_64 = /^[0-9a-f]{64}$/;
const OPERATION_ID = /^op_[0-9a-f]{32}$/;

/** Digests and operation ids are kept as their bytes, other ids as text. */
export function packId(id: string): SqlValue {
  if (HEX_64.test(id)) return Buffer.from(id, 'hex');
  return OPERATION_ID.test(id) ? Buffer.from(id.slice(3), 'hex') : id;
}

export function unpackId(value: SqlRow[number] | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) throw new TypeError(`an id was expected, found ${typeof value}`);
  const hex = Buffer.from(value instanceof ArrayBuffer ? new Uint8Array(value) : value).toString('hex');
  return hex.length === 32 ? `op_${hex}` : hex;
}

export function textOf(value: SqlRow[number] | undefined): string {
  if (typeof value !== 'string') throw new TypeError(`a text was expected, found ${typeof value}`);
  return value;
}

export function textOrNull(value: SqlRow[number] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

export function numberOf(value: SqlRow[number] | undefined): number {
  if (typeof value !== 'number') throw new TypeError(`a number was expected, found ${typeof value}`);
  return value;
}

export function numberOrNull(value: SqlRow[number] | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
