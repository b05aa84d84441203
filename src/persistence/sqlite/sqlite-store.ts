/** The Store port on one SQLite file, which several processes may share. */
import { systemClock, type Clock } from '../../clock.ts';
import { PawlError } from '../../errors.ts';
import type { Commit, LedgerEntry, Receipt } from '../../records.ts';
import { ChangeFeed } from '../change-feed.ts';
import { unreadableEntry } from '../door-entries.ts';
import { checkCommit, checkEvent, checkFirstCommit, checkId, checkListFilter } from '../store-checks.ts';
import { summaryOf } from '../stored-text.ts';
import type { Lease, Store, StoredRun } from '../store.ts';
import { auditRun } from './audit-run.ts';
import { Checkpointer } from './checkpointer.ts';
import { claimRuns, isAnythingDue } from './claim-runs.ts';
import { commitRun, createRun } from './commit-run.ts';
import { openConnection, whileBusy, type ConnectionOptions } from './connection.ts';
import { textOf, type Database } from './database.ts';
import type { SqliteDatabase } from './driver.ts';
import { ForeignChanges } from './foreign-changes.ts';
import { acceptEvent, findVerdict, inboxAfter, receiveReceipt } from './inbox-rows.ts';
import {
  appendRow,
  firstOfSequence,
  ledgerRows,
  prepareRow,
  receiptAt,
  rowsBehind,
  type LedgerRow,
} from './ledger-rows.ts';
import { unpackEntries, unpackReceipts } from './ledger-text.ts';
import { OperationRows } from './operation-rows.ts';
import { forgetReservations, reserveKey, settleKey } from './reservation-rows.ts';
import { findLeased, findRun, freed, leased, saveRun, type RunRow } from './run-rows.ts';
import { dueRuns, listRuns, storedRun } from './stored-runs.ts';
import { WriteQueue } from './write-queue.ts';

export interface SqliteStoreOptions {
  /** A file, created if missing (its folder is not), or `:memory:`, which lasts as long as the store. */
  path?: string;
  /** Instead of a path: a database opened by the caller (better-sqlite3, libsql, node:sqlite), who also closes it. */
  database?: SqliteDatabase;
  /** `disk` (default) syncs each transaction; `process` survives `kill -9` but not a loss of power. */
  durability?: 'disk' | 'process';
  /** Prefix of all tables, default `pawl`: several stores may share one file. */
  namespace?: string;
  /** How long a call waits for other processes before STORE_BUSY, default 5,000. */
  busyTimeoutMs?: number;
  clock?: Pick<Clock, 'nowMs'>;
}

/**
 * Opens a store on first use. Every method is one transaction; those asked for in the same turn of the event loop share
 * one, and none is answered before it is committed. After a crash each is there whole or not at all.
 * @throws INVALID_ARGUMENT at once for options that cannot work; STORE_UNREACHABLE, STORE_CORRUPT, STORE_NEWER,
 * STORE_READ_ONLY and MISSING_PACKAGE from the first call
 */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { path, database, namespace = 'pawl' } = options;
  if ((path === undefined) === (database === undefined)) {
    throw new PawlError('INVALID_ARGUMENT', 'sqliteStore needs either a path or a database.');
  }
  if (!/^[a-z][a-z0-9_]{0,30}$/.test(namespace)) {
    throw new PawlError('INVALID_ARGUMENT', `namespace ${JSON.stringify(namespace)} was refused: use a-z, 0-9 and _.`);
  }
  return new SqliteStore({
    path: path ?? null,
    database: database ?? null,
    durability: options.durability ?? 'disk',
    namespace,
    busyTimeoutMs: options.busyTimeoutMs ?? 5_000,
    place: path === undefined ? 'in the given database' : `sqlite:${path}`,
    clock: options.clock ?? systemClock,
  });
}

interface Opened {
  database: Database;
  writes: WriteQueue;
  checkpointer: Checkpointer;
  foreign: ForeignChanges;
}

const ROWS_AT_ONCE = 200;
/** Every table with rows of a run, for `erase`. */
const RUN_TABLES = ['runs', 'records', 'patches', 'ledger', 'operations', 'inbox', 'events'];

class SqliteStore implements Store {
  readonly kind = 'sqlite';
  readonly #options: ConnectionOptions & { clock: Pick<Clock, 'nowMs'> };
  readonly #feed = new ChangeFeed();
  #opening: Promise<Opened> | null = null;
  #opened: Opened | null = null;
  #isClosed = false;

  constructor(options: ConnectionOptions & { clock: Pick<Clock, 'nowMs'> }) {
    this.#options = options;
  }

  async create(commit: Commit): Promise<{ kind: 'created' | 'exists'; run: StoredRun }> {
    checkCommit(commit);
    checkFirstCommit(commit);
    const answer = await this.#write((database, nowMs) => {
      const kind = findRun(database, commit.runId) ? 'exists' : 'created';
      if (kind === 'created') createRun(database, commit, nowMs);
      return { kind, run: this.#stored(database, commit.runId, nowMs) } as const;
    });
    if (answer.kind === 'created') this.#feed.emit(commit.runId);
    return answer;
  }

  async load(runId: string): Promise<StoredRun | null> {
    return this.#readRun(runId, null, (database, run) => storedRun(database, run, this.#nowMs()));
  }

  async accept(...[runId, event, refused]: Parameters<Store['accept']>): ReturnType<Store['accept']> {
    checkEvent(runId, event);
    const answer = await this.#write((database, nowMs) => acceptEvent(database, runId, event, refused, nowMs));
    if (answer.kind === 'accepted' || answer.kind === 'final') this.#feed.emit(runId);
    return answer;
  }

  async verdict(runId: string, eventId: string): ReturnType<Store['verdict']> {
    return this.#readRun(runId, null, (database, run) => findVerdict(database, run, eventId) ?? null);
  }

  async claim(request: Parameters<Store['claim']>[0]): ReturnType<Store['claim']> {
    checkId('workerId', request.workerId);
    if (!request.runIds && !(await this.#read((database) => isAnythingDue(database, this.#nowMs())))) return [];
    return this.#write((database, nowMs) => claimRuns(database, request, nowMs));
  }

  async commit(commit: Commit): ReturnType<Store['commit']> {
    checkCommit(commit);
    const answer = await this.#write((database, nowMs) => commitRun(database, commit, nowMs, this.#isDurable));
    // Whoever keeps the lease knows what it committed: a hint would only make it renew what it has just renewed.
    if (answer.kind === 'ok' && 'releaseDueAtMs' in commit.lease) this.#feed.emit(commit.runId);
    return answer;
  }

  async receive(runId: string, receipt: Receipt): ReturnType<Store['receive']> {
    checkId('runId', runId);
    checkId('operationId', receipt.operationId);
    const answer = await this.#write((database, nowMs) => receiveReceipt(database, runId, receipt, nowMs));
    if (answer === 'stored') this.#feed.emit(runId);
    return answer;
  }

  async renew(lease: Lease, leaseMs: number, afterPosition: number): ReturnType<Store['renew']> {
    return this.#write((database, nowMs) => {
      const run = findLeased(database, lease.runId, lease.fence);
      if (!run) return { kind: 'stale_fence' };
      const leaseUntilMs = nowMs + leaseMs;
      saveRun(database, run, { ...run, ...leased(run, run.lease.workerId, leaseUntilMs) });
      return { kind: 'ok', inbox: inboxAfter(database, run, afterPosition), nowMs, leaseUntilMs };
    });
  }

  async release(lease: Lease, to: { dueAtMs: number | null }): ReturnType<Store['release']> {
    return this.#freeing(lease, (database, run, nowMs) => {
      saveRun(database, run, { ...run, ...freed(run, to.dueAtMs, nowMs) });
    });
  }

  async markUnreadable(lease: Lease, reason: string): ReturnType<Store['markUnreadable']> {
    return this.#freeing(lease, (database, run, nowMs) => {
      const prepared = prepareRow(run, nowMs, [unreadableEntry(reason, run.sequence, nowMs)], [], run.sequence);
      const appended = prepared && appendRow(database, run, prepared);
      const summary = summaryOf(textOf(database.get('SELECT summary FROM {runs} WHERE run = ?', [run.run])?.[0]));
      const after: RunRow = { ...run, ...appended?.changes, isMarked: true, lease: null, dueAtMs: null };
      saveRun(database, run, after, { ...summary, status: 'needs_human', waitingFor: ['record_unreadable'] });
    });
  }

  async *read(...[runId, from = {}]: Parameters<Store['read']>): AsyncGenerator<LedgerEntry> {
    const { fromSequence = 0, fromIndex = 0, limit = Infinity } = from;
    let next = await this.#readRun(runId, 0, (database, run) =>
      fromSequence > 0 ? Math.max(fromIndex, firstOfSequence(database, run, fromSequence)) : fromIndex,
    );
    let left = limit;
    while (left > 0) {
      const page = await this.#readRun(runId, [], (database, run) =>
        ledgerRows(database, run.run, next, ROWS_AT_ONCE).flatMap((row) => unpackEntries({ ...row, runId }, row.body)),
      );
      const entries = page.filter((entry) => entry.index >= next);
      if (entries.length === 0) return;
      for (const entry of entries) {
        if (entry.index < fromIndex || entry.sequence < fromSequence) continue;
        yield entry;
        if (--left <= 0) return;
      }
      next = (entries.at(-1)?.index ?? next) + 1;
    }
  }

  async list(filter: Parameters<Store['list']>[0]): ReturnType<Store['list']> {
    const page = checkListFilter(filter);
    return this.#read((database) => listRuns(database, filter, page, this.#nowMs()));
  }

  async due(limit: number): ReturnType<Store['due']> {
    return this.#read((database) => dueRuns(database, limit));
  }

  async *receipts(runId: string): AsyncGenerator<Receipt> {
    let last: LedgerRow | null = null;
    do {
      const page: LedgerRow[] = await this.#readRun(runId, [], (database, run) =>
        rowsBehind(database, run.run, last, ROWS_AT_ONCE),
      );
      for (const row of page) {
        yield* unpackReceipts(row, row.body).filter(({ outcome }) => outcome !== 'not_executed');
      }
      last = page.at(-1) ?? null;
    } while (last);
  }

  async receipt(runId: string, operationId: string): Promise<Receipt | null> {
    checkId('operationId', operationId);
    return this.#readRun(runId, null, (database, run) => {
      const terminal = new OperationRows(database, run.run).find(operationId)?.terminal;
      return terminal ? receiptAt(database, terminal.at) : null;
    });
  }

  async audit(runId: string): ReturnType<Store['audit']> {
    return this.#readRun(runId, [], auditRun);
  }

  async erase(runId: string): Promise<boolean> {
    checkId('runId', runId);
    const isErased = await this.#write((database) => {
      const run = findRun(database, runId);
      if (!run) return false;
      const operations = 'SELECT operation FROM {operations} WHERE run = ?';
      database.run(`DELETE FROM {absences} WHERE operation IN (${operations})`, [run.run]);
      for (const table of RUN_TABLES) database.run(`DELETE FROM {${table}} WHERE run = ?`, [run.run]);
      forgetReservations(database, runId);
      return true;
    });
    if (isErased) this.#feed.emit(runId);
    return isErased;
  }

  async reserve(request: Parameters<Store['reserve']>[0]): ReturnType<Store['reserve']> {
    for (const id of [request.tenant, request.key, request.runId]) checkId('id', id);
    return this.#write((database) => reserveKey(database, request));
  }

  async settleReservation(request: Parameters<Store['settleReservation']>[0]): Promise<void> {
    for (const id of [request.tenant, request.key, request.runId]) checkId('id', id);
    await this.#write((database) => settleKey(database, request));
    this.#feed.emit(request.runId);
  }

  watch(signal: AbortSignal): AsyncIterable<string> {
    this.#checkOpen();
    // A store that cannot be opened says so to whoever calls it; a watcher only gets no hints.
    this.#open().then(
      ({ foreign }) => foreign.start(),
      () => {},
    );
    return this.#feed.watch(signal);
  }

  async registerStructure(agent: string, version: number, structure: string): Promise<string> {
    checkId('agent', agent);
    const find = (database: Database): string | null => {
      const row = database.get('SELECT structure FROM {structures} WHERE agent = ? AND version = ?', [agent, version]);
      return row ? textOf(row[0]) : null;
    };
    const known = await this.#read(find);
    if (known !== null) return known;
    return this.#write((database) => {
      database.run('INSERT OR IGNORE INTO {structures} VALUES (?, ?, ?)', [agent, version, structure]);
      return find(database) ?? structure;
    });
  }

  async nowMs(): Promise<number> {
    this.#checkOpen();
    return this.#nowMs();
  }

  /** Writes that were asked for are finished first. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#feed.close();
    const opened = await this.#opening?.catch(() => null);
    if (!opened) return;
    opened.foreign.stop();
    await opened.writes.drained();
    opened.checkpointer.stop();
    if (!this.#options.database) opened.database.close();
  }

  #nowMs(): number {
    return this.#options.clock.nowMs();
  }

  /** A memory database answers like the memory store: what lasts as long as the store is as durable as asked. */
  #isDurable = ({ durability }: Commit): boolean =>
    typeof durability === 'string' && (durability === 'process' || this.#options.durability === 'disk');

  #stored(database: Database, runId: string, nowMs: number): StoredRun {
    const run = findRun(database, runId);
    if (!run) throw new TypeError(`run ${runId} was just created`);
    return storedRun(database, run, nowMs);
  }

  async #freeing(
    { runId, fence }: Lease,
    change: (database: Database, run: RunRow, nowMs: number) => void,
  ): Promise<'ok' | 'stale_fence'> {
    const answer = await this.#write((database, nowMs) => {
      const run = findLeased(database, runId, fence);
      if (run) change(database, run, nowMs);
      return run ? 'ok' : 'stale_fence';
    });
    if (answer === 'ok') this.#feed.emit(runId);
    return answer;
  }

  async #write<T>(work: (database: Database, nowMs: number) => T): Promise<T> {
    const { database, writes } = this.#opened ?? (await this.#open());
    this.#checkOpen();
    return writes.add(() => work(database, this.#nowMs()));
  }

  async #read<T>(read: (database: Database) => T): Promise<T> {
    const { database } = this.#opened ?? (await this.#open());
    this.#checkOpen();
    return whileBusy(this.#options, () => database.snapshot(() => read(database)));
  }

  async #readRun<T>(runId: string, missing: T, read: (database: Database, run: RunRow) => T): Promise<T> {
    checkId('runId', runId);
    return this.#read((database) => {
      const run = findRun(database, runId);
      return run ? read(database, run) : missing;
    });
  }

  #open(): Promise<Opened> {
    this.#checkOpen();
    this.#opening ??= this.#connect();
    return this.#opening;
  }

  async #connect(): Promise<Opened> {
    try {
      const database = await openConnection(this.#options);
      const checkpointer = new Checkpointer(database);
      const { place, busyTimeoutMs } = this.#options;
      const writes = new WriteQueue(database, place, busyTimeoutMs, (items) => checkpointer.wrote(items));
      const foreign = new ForeignChanges(database, this.#feed, () => this.#nowMs());
      this.#opened = { database, writes, checkpointer, foreign };
      return this.#opened;
    } catch (error) {
      // The next call tries again.
      this.#opening = null;
      throw error;
    }
  }

  #checkOpen(): void {
    if (!this.#isClosed) return;
    throw new PawlError('STORE_CLOSED', `The store ${this.#options.place} was closed; open it again.`);
  }
}
