/** The orders that the payment server is seeded with: its own file beside the CSV, or the rows taken at their word. */
import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import { isCurrency, parseAmount } from './money.ts';
import { readRows } from './rows.ts';

export const order = z.object({
  orderId: z.string(),
  vendor: z.string(),
  email: z.string(),
  amountCents: z.int(),
  currency: z.string(),
  refundable: z.boolean(),
});
export type Order = z.infer<typeof order>;

/** `vendor-refunds.csv` has `vendor-refunds.orders.csv`; a file of one's own without it is believed in every row. */
export function ordersFor(rowFile: string): Order[] {
  const orderFile = rowFile.replace(/\.csv$/, '.orders.csv');
  if (orderFile !== rowFile && existsSync(orderFile)) return readOrders(orderFile);
  return readRows(rowFile)
    .rows.filter((row) => row.repeats === null)
    .map(({ request: { orderId, vendor, email, amountCents, currency } }) => ({
      orderId,
      vendor,
      email,
      amountCents,
      currency,
      refundable: true,
    }));
}

export function readOrders(file: string): Order[] {
  const records: Record<string, string>[] = parse(readFileSync(file, 'utf8'), { columns: true, trim: true });
  return records.map((record) => {
    const currency = record['currency'] ?? '';
    const money = isCurrency(currency) ? parseAmount(record['amount'] ?? '', currency) : null;
    if (money?.kind !== 'amount') throw new TypeError(`${file}: order ${record['order']} has no amount of money.`);
    return order.parse({
      orderId: record['order'],
      vendor: record['vendor'],
      email: record['email'],
      amountCents: money.amountCents,
      currency,
      refundable: record['refundable'] === 'yes',
    });
  });
}
