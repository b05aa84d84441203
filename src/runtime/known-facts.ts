/** Facts of the store that the holder of a run knows: receipts of open operations, and the latest business keys. */
import type { ClosedOperation, CommitResult, Receipt, StoredOperation } from '../records.ts';

/** An older key is found out again by a conflict. */
const REMEMBERED_KEYS = 100;

export class KnownFacts {
  #receipts: Readonly<Record<string, Receipt>>;
  readonly #byKey = new Map<string, StoredOperation>();

  constructor(receipts: Readonly<Record<string, Receipt>>) {
    this.#receipts = receipts;
  }

  /** Terminal ones by operationId, `not_executed` by `operationId#attempt`. */
  get receipts(): Readonly<Record<string, Receipt>> {
    return this.#receipts;
  }

  get byKey(): ReadonlyMap<string, StoredOperation> {
    return this.#byKey;
  }

  learn(keyDigest: string, operation: StoredOperation): void {
    this.#byKey.delete(keyDigest);
    this.#byKey.set(keyDigest, operation);
    if (this.#byKey.size <= REMEMBERED_KEYS) return;
    const oldest = this.#byKey.keys().next().value;
    if (oldest !== undefined) this.#byKey.delete(oldest);
  }

  /** What a refused commit was told. */
  take(conflict: CommitResult & { kind: 'conflict' }): void {
    const { stored } = conflict;
    if (stored.key) this.learn(stored.key.keyDigest, stored);
    if (stored.receipt) this.#receipts = { ...this.#receipts, [stored.operationId]: stored.receipt };
  }

  /** Receipts of operations that left the record are no longer looked at. */
  forget(closed: readonly ClosedOperation[]): void {
    const known = closed.filter(({ operationId }) => this.#receipts[operationId] !== undefined);
    if (known.length === 0) return;
    const receipts = { ...this.#receipts };
    for (const { operationId } of known) delete receipts[operationId];
    this.#receipts = receipts;
  }
}
