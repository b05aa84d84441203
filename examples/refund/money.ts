/** Money as integers of the currency's smallest unit. No amount is ever a fraction of a binary number. */

interface CurrencyRow {
  /** Digits after the point. */
  decimals: number;
  /** A refund above this many units of the smallest kind needs a person. */
  reviewAbove: number;
}

export const CURRENCIES = {
  EUR: { decimals: 2, reviewAbove: 100_000 },
  USD: { decimals: 2, reviewAbove: 110_000 },
  GBP: { decimals: 2, reviewAbove: 90_000 },
  CHF: { decimals: 2, reviewAbove: 100_000 },
  JPY: { decimals: 0, reviewAbove: 160_000 },
} as const satisfies Record<string, CurrencyRow>;

export type Currency = keyof typeof CURRENCIES;

export function isCurrency(text: string): text is Currency {
  return Object.hasOwn(CURRENCIES, text);
}

/** Whether an amount may be refunded without a person. */
export function isWithinLimit(amountCents: number, currency: string): boolean {
  return isCurrency(currency) && amountCents <= CURRENCIES[currency].reviewAbove;
}

/**
 * Reads `1299.00`, `1,299.00` or `1299` as integer units of the currency. Commas separate thousands; more digits after
 * the point than the currency has are refused, not rounded.
 */
export function parseAmount(
  text: string,
  currency: Currency,
): { kind: 'amount'; amountCents: number } | { kind: 'bad'; reason: string } {
  const match = /^(-?)(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?$/.exec(text);
  if (!match) return { kind: 'bad', reason: `amount '${text}' is not a number` };
  const [, sign, whole = '', fraction = ''] = match;
  const { decimals } = CURRENCIES[currency];
  if (fraction.length > decimals) {
    return { kind: 'bad', reason: `amount '${text}' has more digits than ${currency} has (${decimals})` };
  }
  const amountCents = Number(whole.replaceAll(',', '') + fraction.padEnd(decimals, '0'));
  if (!Number.isSafeInteger(amountCents)) return { kind: 'bad', reason: `amount '${text}' is too large` };
  if (sign === '-' || amountCents === 0) return { kind: 'bad', reason: `amount '${text}' is not above zero` };
  return { kind: 'amount', amountCents };
}

/** `129.90 EUR`, `12800 JPY`. */
export function formatAmount(amountCents: number, currency: string): string {
  const decimals = isCurrency(currency) ? CURRENCIES[currency].decimals : 0;
  const digits = String(amountCents).padStart(decimals + 1, '0');
  const whole = digits.slice(0, digits.length - decimals);
  return decimals === 0 ? `${whole} ${currency}` : `${whole}.${digits.slice(-decimals)} ${currency}`;
}
