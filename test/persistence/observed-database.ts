/** A libsql database that tells of each statement before it runs; a thrown error then stands for a failed statement. */
import Database from 'libsql';
import type { SqliteDatabase } from '../../src/persistence/sqlite/index.ts';

export interface ObservedDatabase extends SqliteDatabase {
  /** Called with the SQL before each statement. */
  onStatement: (sql: string, values: readonly unknown[]) => void;
  raw: Database.Database;
}

interface Prepared {
  run(values: readonly unknown[]): { lastInsertRowid: number | bigint };
  get(values: readonly unknown[]): unknown;
  all(values: readonly unknown[]): unknown[];
}

export function observedDatabase(path: string): ObservedDatabase {
  const raw = new Database(path);
  const observed: ObservedDatabase = {
    raw,
    onStatement: () => {},
    exec(sql) {
      observed.onStatement(sql, []);
      raw.exec(sql);
    },
    prepare(sql) {
      const statement = raw.prepare(sql);
      if (statement.reader) statement.raw(true);
      const prepared = statement as unknown as Prepared;
      const told = <T>(values: readonly unknown[], call: () => T): T => {
        observed.onStatement(sql, values);
        return call();
      };
      return {
        reader: false,
        raw: () => {},
        run: (values: readonly unknown[]) => told(values, () => prepared.run(values)),
        get: (values: readonly unknown[]) => told(values, () => prepared.get(values)),
        all: (values: readonly unknown[]) => told(values, () => prepared.all(values)),
      };
    },
    close: () => raw.close(),
  };
  return observed;
}
