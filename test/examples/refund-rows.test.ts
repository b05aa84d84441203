import { fileURLToPath } from 'node:url';
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatAmount, isWithinLimit, parseAmount } from '../../examples/refund/money.ts';
import { ordersFor } from '../../examples/refund/orders.ts';
import { COLUMNS, parseRows, readRows } from '../../examples/refund/rows.ts';
import { newFile } from './servers.ts';

const SHIPPED = fileURLToPath(new URL('../../examples/refund/vendor-refunds.csv', import.meta.url));
const HEADER = COLUMNS.join(',');
const GOOD = 'R-1,Nordwind,billing@nordwind.example,PO-1,50.00,EUR,damaged in transit';

const parse = (...lines: string[]) => parseRows([HEADER, ...lines].join('\n'));

describe('money is read without fractions', () => {
  test.each([
    ['50.00', 'EUR', 5_000],
    ['50', 'EUR', 5_000],
    ['50.5', 'EUR', 5_050],
    ['0.07', 'USD', 7],
    ['1,299.99', 'USD', 129_999],
    ['1,234,567.89', 'GBP', 123_456_789],
    ['12800', 'JPY', 12_800],
    ['4.35', 'EUR', 435],
    ['8.29', 'CHF', 829],
  ] as const)('%s %s is %i', (text, currency, amountCents) => {
    expect(parseAmount(text, currency)).toEqual({ kind: 'amount', amountCents });
  });

  test.each([
    ['12.345', 'EUR', 'more digits'],
    ['12.5', 'JPY', 'more digits'],
    ['-3.00', 'EUR', 'not above zero'],
    ['0.00', 'EUR', 'not above zero'],
    ['12,34', 'EUR', 'not a number'],
    ['1e5', 'EUR', 'not a number'],
    ['', 'EUR', 'not a number'],
    ['99999999999999999', 'EUR', 'too large'],
  ] as const)('%s %s is refused', (text, currency, reason) => {
    expect(parseAmount(text, currency)).toEqual({ kind: 'bad', reason: expect.stringContaining(reason) });
  });

  test('and written back as it was', () => {
    expect(formatAmount(7, 'USD')).toBe('0.07 USD');
    expect(formatAmount(129_999, 'USD')).toBe('1299.99 USD');
    expect(formatAmount(12_800, 'JPY')).toBe('12800 JPY');
    expect([isWithinLimit(100_000, 'EUR'), isWithinLimit(100_001, 'EUR'), isWithinLimit(1, 'XYZ')]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('a bad row is reported with line and reason, and stops nothing', () => {
  test.each([
    ['R-1,Nordwind,billing@nordwind.example,,50.00,EUR,damaged', 'order is missing'],
    ['R-1,,billing@nordwind.example,PO-1,50.00,EUR,damaged', 'vendor is missing'],
    ['R-1,Nordwind,billing@nordwind.example,PO-1,fifty,EUR,damaged', "amount 'fifty' is not a number"],
    ['R-1,Nordwind,billing@nordwind.example,PO-1,50.00,XYZ,damaged', "currency 'XYZ' is not one we pay in"],
    ['R-1,Nordwind,billing@nordwind.example,PO-1,-50.00,EUR,damaged', "amount '-50.00' is not above zero"],
    ['R-1,Nordwind,nobody,PO-1,50.00,EUR,damaged', "email 'nobody' is not an address"],
    ['R-1,Nordwind,billing@nordwind.example,PO 1,50.00,EUR,damaged', "order 'PO 1' has characters that no order has"],
    ['R-1,Nordwind,billing@nordwind.example,PO-1', '4 fields, expected 7'],
    ['R-1,"Nord"wind,billing@nordwind.example,PO-1,50.00,EUR,damaged', 'broken quoting (Invalid Closing Quote)'],
    ['R-1,"Nordwind,billing@nordwind.example,PO-1,50.00,EUR,damaged', 'broken quoting (Quote Not Closed)'],
  ])('%s', (line, reason) => {
    const file = parse(line, GOOD.replace('R-1', 'R-2'));
    expect(file.bad).toEqual([{ line: 2, reason, text: line }]);
    expect(file.rows).toMatchObject([{ line: 3, request: { orderId: 'PO-1' } }]);
  });

  test('another file than ours is refused whole', () => {
    expect(() => parseRows('id,amount\n1,2')).toThrow("The first line is 'id,amount'");
  });
});

test('the same row twice is one run, and the same order with another amount is bad', () => {
  const file = parse(GOOD, GOOD.replace('R-1', 'R-2'), GOOD.replace('50.00', '60.00'));
  expect(file.rows).toMatchObject([
    { line: 2, runId: 'refund:PO-1', repeats: null },
    { line: 3, runId: 'refund:PO-1', repeats: 2 },
  ]);
  expect(file.rows[0]?.request).toEqual(file.rows[1]?.request);
  expect(file.bad).toMatchObject([{ line: 4, reason: 'order PO-1 is on line 2 already, with another amount' }]);
});

test('line ends, blank lines, a byte order mark and quoted commas are all right', () => {
  const file = parseRows(`\uFEFF${HEADER}\r\n\r\n${GOOD.replace('damaged in transit', '"damaged, badly"')}\r\n`);
  expect(file).toMatchObject({
    read: 1,
    bad: [],
    rows: [{ line: 3, request: { reason: 'damaged, badly' } }],
  });
});

describe('the file that ships', () => {
  const file = readRows(SHIPPED);

  test('has 200 rows, with bad ones, repeated ones and five currencies', () => {
    expect(file.read).toBe(200);
    expect(file.bad).toHaveLength(7);
    expect(file.rows.filter((row) => row.repeats !== null)).toHaveLength(6);
    expect(new Set(file.rows.map((row) => row.request.currency)).size).toBe(5);
    expect(file.rows.every((row) => /^[A-Za-z0-9._:-]{1,200}$/.test(row.runId))).toBe(true);
  });

  test('a limit takes the first rows, good and bad', () => {
    const first = readRows(SHIPPED, 12);
    expect(first.read).toBe(12);
    expect(first.rows.length + first.bad.length).toBe(12);
    expect(first.rows).toEqual(file.rows.slice(0, first.rows.length));
  });

  test('has orders that differ, that are closed, and that do not exist', () => {
    const orders = new Map(ordersFor(SHIPPED).map((order) => [order.orderId, order]));
    const rows = file.rows.filter((row) => row.repeats === null).map((row) => row.request);
    const found = (request: { orderId: string }) => orders.get(request.orderId);
    expect(rows.filter((row) => !found(row))).toHaveLength(3);
    expect(rows.filter((row) => found(row)?.refundable === false)).toHaveLength(5);
    expect(rows.filter((row) => (found(row) ?? row).amountCents !== row.amountCents)).toHaveLength(4);
    expect(rows.filter((row) => (found(row) ?? row).currency !== row.currency)).toHaveLength(3);
    expect(rows.filter((row) => !isWithinLimit(row.amountCents, row.currency))).toHaveLength(7);
  });
});

test('a file without orders of its own is believed in every row', () => {
  const file = `${newFile()}.csv`;
  writeFileSync(file, [HEADER, GOOD, GOOD].join('\n'));
  expect(ordersFor(file)).toEqual([
    {
      orderId: 'PO-1',
      vendor: 'Nordwind',
      email: 'billing@nordwind.example',
      amountCents: 5_000,
      currency: 'EUR',
      refundable: true,
    },
  ]);
});
