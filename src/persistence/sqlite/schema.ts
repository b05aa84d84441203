/**
 * The tables, as numbered migrations that only go forward. Rows of a run are found by its number, not its id; what grows
 * with every step is appended in order of time, so that pages are full, and found through narrow indexes.
 *
 * - `runs`: one row per run, with everything a commit checks. `due_at` of a leased run may lag behind its lease end
 *   (never exceed it), so that renewing a lease touches no index.
 * - `records`, `patches`: the last full record and the patches after it.
 * - `ledger`: one row per commit or arrival, with all its entries and the receipts it stored. `first` is the index of
 *   its first entry, `link` the first 48 bits of the digest chain up to it; the whole digest is in `runs`.
 * - `operations`: keys, closed operations, and where in the ledger the receipt is.
 */
import { PawlError } from '../../errors.ts';
import { numberOf, type Database } from './database.ts';

const MIGRATIONS: readonly string[] = [
  `CREATE TABLE {runs} (
     run INTEGER PRIMARY KEY, run_id TEXT NOT NULL, agent TEXT NOT NULL, agent_version INTEGER NOT NULL,
     tenant TEXT NOT NULL, status TEXT NOT NULL, due_at INTEGER, fence INTEGER NOT NULL, lease_until INTEGER,
     worker TEXT, sequence INTEGER NOT NULL, position INTEGER NOT NULL, last_position INTEGER NOT NULL,
     closed INTEGER NOT NULL, unreadable INTEGER NOT NULL, commit_id TEXT NOT NULL, record_digest TEXT NOT NULL,
     patch_count INTEGER NOT NULL, entry_count INTEGER NOT NULL, ledger_digest TEXT NOT NULL,
     receipt_count INTEGER NOT NULL, summary TEXT NOT NULL);
   CREATE UNIQUE INDEX {runs_by_id} ON {runs} (run_id);
   CREATE INDEX {runs_by_due} ON {runs} (due_at) WHERE due_at IS NOT NULL;
   CREATE INDEX {runs_by_agent_due} ON {runs} (agent, agent_version, due_at) WHERE due_at IS NOT NULL;
   CREATE INDEX {runs_by_status} ON {runs} (status);
   CREATE TABLE {records} (run INTEGER PRIMARY KEY, full_text TEXT NOT NULL);
   CREATE TABLE {patches} (run INTEGER, number INTEGER, patch TEXT NOT NULL, PRIMARY KEY (run, number)) WITHOUT ROWID;
   CREATE TABLE {ledger} (
     row INTEGER PRIMARY KEY, run INTEGER NOT NULL, first INTEGER NOT NULL, sequence INTEGER NOT NULL,
     at INTEGER NOT NULL, link INTEGER NOT NULL, body TEXT NOT NULL);
   CREATE INDEX {ledger_by_run} ON {ledger} (run, first);
   CREATE TABLE {operations} (
     operation INTEGER PRIMARY KEY, run INTEGER NOT NULL, id_hash INTEGER NOT NULL, key_hash INTEGER,
     facts INTEGER NOT NULL, generation INTEGER, status INTEGER, attempts INTEGER, outcome INTEGER,
     receipt_row INTEGER, receipt_place INTEGER, id BLOB NOT NULL, key BLOB, input BLOB, closed_input BLOB);
   CREATE INDEX {operations_by_id} ON {operations} (run, id_hash);
   CREATE INDEX {operations_by_key} ON {operations} (run, key_hash) WHERE key_hash IS NOT NULL;
   CREATE INDEX {operations_open} ON {operations} (run) WHERE status IS NULL AND facts > 0;
   CREATE TABLE {absences} (
     operation INTEGER, attempt INTEGER, receipt_row INTEGER NOT NULL, receipt_place INTEGER NOT NULL,
     PRIMARY KEY (operation, attempt)) WITHOUT ROWID;
   CREATE TABLE {inbox} (run INTEGER, position INTEGER, item TEXT NOT NULL, PRIMARY KEY (run, position)) WITHOUT ROWID;
   CREATE TABLE {events} (run INTEGER, event_id TEXT, verdict TEXT, PRIMARY KEY (run, event_id)) WITHOUT ROWID;
   CREATE TABLE {reservations} (
     tenant TEXT, key TEXT, owner TEXT, intent INTEGER NOT NULL, receipt TEXT, PRIMARY KEY (tenant, key)) WITHOUT ROWID;
   CREATE INDEX {reservations_by_owner} ON {reservations} (owner) WHERE owner IS NOT NULL;
   CREATE TABLE {settled} (
     tenant TEXT, key TEXT, run_id TEXT, intent INTEGER NOT NULL, PRIMARY KEY (tenant, key, run_id)) WITHOUT ROWID;
   CREATE INDEX {settled_by_run} ON {settled} (run_id);
   CREATE TABLE {structures} (
     agent TEXT, version INTEGER, structure TEXT NOT NULL, PRIMARY KEY (agent, version)) WITHOUT ROWID;`,
];

/** The version of the schema that this code reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * Brings the tables to `SCHEMA_VERSION`, in one transaction: of two starters one migrates, the other finds it done. A
 * crash leaves the version before. Throws whatever SQLite throws when busy; then nothing has changed.
 * @throws STORE_NEWER when a newer version of pawl has written here
 */
export function migrate(database: Database, place: string): void {
  if (storedVersion(database, place) === SCHEMA_VERSION) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    database.exec('CREATE TABLE IF NOT EXISTS {meta} (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID');
    for (const migration of MIGRATIONS.slice(storedVersion(database, place))) database.exec(migration);
    database.run(`INSERT OR REPLACE INTO {meta} VALUES ('schema', ?)`, [SCHEMA_VERSION]);
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

function storedVersion(database: Database, place: string): number {
  const table = database.get(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = trim('{meta}', '"')`);
  const row = table && database.get(`SELECT value FROM {meta} WHERE name = 'schema'`);
  const version = row ? numberOf(row[0]) : 0;
  if (version <= SCHEMA_VERSION) return version;
  throw new PawlError(
    'STORE_NEWER',
    `The store ${place} has schema ${version}, this version of pawl knows ${SCHEMA_VERSION}. Use the version that wrote it.`,
    { details: { store: place, found: version, known: SCHEMA_VERSION } },
  );
}
