/** The few numbers that are made of many. None of them changes the list it is given. */

/**
 * The value below which `share` (0 to 1) of the values lie.
 * @param {readonly number[]} values
 * @param {number} share
 */
export function percentile(values, share) {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** @param {readonly number[]} values */
export function median(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {readonly number[]} values */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Rounded to `digits` significant digits: what two noisy cores can say.
 * @param {number} value
 */
export function rounded(value, digits = 3) {
  return Number.isFinite(value) ? Number(value.toPrecision(digits)) : null;
}
