/** The payment provider's own database: orders, refunds and, for repeated keys, first outcomes. The judge of the demo. */
import Database from 'libsql';
import { z } from 'zod';
import { order, type Order } from './orders.ts';

export const refund = z.object({
  refundId: z.string(),
  operationId: z.string(),
  orderId: z.string(),
  amountCents: z.int(),
  currency: z.string(),
  atMs: z.int(),
});
export type Refund = z.infer<typeof refund>;

export const duplicate = z.object({ orderId: z.string(), effects: z.int() });

/** SQLite has no booleans. */
const storedOrder = z
  .object({ ...order.shape, refundable: z.int() })
  .transform((row) => ({ ...row, refundable: row.refundable === 1 }));

/** The answer that an idempotency key keeps for ever. */
const firstOutcome = z.object({ status: z.int(), body: z.string() });
export type FirstOutcome = z.infer<typeof firstOutcome>;

export const paymentJudgement = z.object({
  effects: z.int(),
  /** Orders with more than one refund, whatever the operation ids. */
  duplicates: duplicate.array(),
  refunds: refund.array(),
  /** Requests under way; an effect may still land. */
  pending: z.int(),
});
export type PaymentJudgement = z.infer<typeof paymentJudgement>;

export interface PaymentLedger {
  order(orderId: string): Order | null;
  refund(refundId: string): Refund | null;
  refundsOf(operationId: string): Refund[];
  /** One row, synced before it returns. The answer is kept under the operation id if `keepsOutcome`. */
  addRefund(asked: Omit<Refund, 'refundId' | 'atMs'>, keepsOutcome: boolean): Refund;
  outcome(operationId: string): FirstOutcome | null;
  keepOutcome(operationId: string, outcome: FirstOutcome): void;
  judge(): Omit<PaymentJudgement, 'pending'>;
  close(): void;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS orders (
    orderId TEXT PRIMARY KEY, vendor TEXT, email TEXT, amountCents INTEGER, currency TEXT, refundable INTEGER);
  CREATE TABLE IF NOT EXISTS refunds (
    number INTEGER PRIMARY KEY AUTOINCREMENT, operationId TEXT, orderId TEXT, amountCents INTEGER, currency TEXT,
    atMs INTEGER);
  CREATE INDEX IF NOT EXISTS refundsByOperation ON refunds (operationId);
  CREATE TABLE IF NOT EXISTS outcomes (operationId TEXT PRIMARY KEY, status INTEGER, body TEXT);`;

const REFUND = `SELECT 're_' || number AS refundId, operationId, orderId, amountCents, currency, atMs FROM refunds`;

const DUPLICATES = 'SELECT orderId, count(*) AS effects FROM refunds GROUP BY orderId HAVING count(*) > 1';

export function openPaymentLedger(file: string, orders: Order[]): PaymentLedger {
  const database = new Database(file);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec(SCHEMA);
  seedOrders(database, orders);

  const orderById = database.prepare('SELECT * FROM orders WHERE orderId = ?');
  const refundByNumber = database.prepare(`${REFUND} WHERE number = ?`);
  const refundsByOperation = database.prepare(`${REFUND} WHERE operationId = ? ORDER BY number`);
  const insertRefund = database.prepare(
    'INSERT INTO refunds (operationId, orderId, amountCents, currency, atMs) VALUES (?, ?, ?, ?, ?)',
  );
  const outcomeById = database.prepare('SELECT status, body FROM outcomes WHERE operationId = ?');
  const insertOutcome = database.prepare('INSERT INTO outcomes (operationId, status, body) VALUES (?, ?, ?)');

  const addRefund = database.transaction((asked: Omit<Refund, 'refundId' | 'atMs'>, keepsOutcome: boolean) => {
    const atMs = Date.now();
    const { lastInsertRowid } = insertRefund.run(
      asked.operationId,
      asked.orderId,
      asked.amountCents,
      asked.currency,
      atMs,
    );
    const refundId = `re_${lastInsertRowid}`;
    if (keepsOutcome) insertOutcome.run(asked.operationId, 201, JSON.stringify({ refundId }));
    return { refundId, ...asked, atMs };
  });

  return {
    order(orderId) {
      const found = orderById.get(orderId);
      return found === undefined ? null : storedOrder.parse(found);
    },
    refund(refundId) {
      const found = refundByNumber.get(Number(refundId.replace(/^re_/, '')));
      return found ? refund.parse(found) : null;
    },
    refundsOf: (operationId) => refund.array().parse(refundsByOperation.all(operationId)),
    addRefund: (asked, keepsOutcome) => addRefund(asked, keepsOutcome),
    outcome: (operationId) => firstOutcome.nullable().parse(outcomeById.get(operationId) ?? null),
    keepOutcome(operationId, { status, body }) {
      insertOutcome.run(operationId, status, body);
    },
    judge() {
      const refunds = refund.array().parse(database.prepare(`${REFUND} ORDER BY number`).all());
      const duplicates = duplicate.array().parse(database.prepare(DUPLICATES).all());
      return { effects: refunds.length, duplicates, refunds };
    },
    close() {
      database.close();
    },
  };
}

function seedOrders(database: Database.Database, orders: Order[]): void {
  const insert = database.prepare('INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, ?, ?)');
  database.transaction(() => {
    for (const { orderId, vendor, email, amountCents, currency, refundable } of orders) {
      insert.run(orderId, vendor, email, amountCents, currency, refundable ? 1 : 0);
    }
  })();
}
