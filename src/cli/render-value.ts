/** Stored values as people read them. */
import type { Json, RunStatus } from '../records.ts';
import type { Colour } from './paint.ts';
import { printable } from './render-table.ts';

/** The innermost states: `refunding`, or `payment.refunding + mail.idle`. */
export function stateText(value: Json): string {
  const leaves = leavesOf(value, '');
  return leaves.length === 0 ? '(none)' : leaves.join(' + ');
}

function leavesOf(value: Json, prefix: string): string[] {
  if (typeof value === 'string') return value === '' ? [] : [prefix + value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const below = leavesOf(inner, `${prefix}${key}.`);
    return below.length === 0 ? [prefix + key] : below;
  });
}

/** ISO 8601, UTC. */
export function timeText(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? String(atMs) : date.toISOString();
}

/** How far a time lies from `nowMs`: `in 3 s`, `2 h ago`. */
export function distanceText(atMs: number, nowMs: number): string {
  const awayMs = Math.abs(atMs - nowMs);
  const [, unitMs, unit] = UNITS.find(([fromMs]) => awayMs >= fromMs) ?? [0, 1, 'ms'];
  const shown = `${Math.round(awayMs / unitMs)} ${unit}`;
  return atMs > nowMs ? `in ${shown}` : `${shown} ago`;
}

/** From which distance on, the unit and its name. */
const UNITS: readonly [number, number, string][] = [
  [172_800_000, 86_400_000, 'days'],
  [5_400_000, 3_600_000, 'h'],
  [90_000, 60_000, 'min'],
  [1_000, 1_000, 's'],
];

export function jsonText(value: unknown): string {
  return printable(JSON.stringify(value) ?? 'null');
}

export const STATUS_TEXT: Record<RunStatus, string> = {
  running: 'running',
  waiting: 'waiting',
  needs_human: 'needs a human',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

export const STATUS_COLOUR: Record<RunStatus, Colour> = {
  running: 'cyan',
  waiting: 'yellow',
  needs_human: 'red',
  done: 'green',
  failed: 'red',
  cancelled: 'dim',
};
