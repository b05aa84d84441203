/** Kills this process with SIGKILL at one boundary, in a different run each time, and remembers it for the next process. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { CrashPoint, CrashPointInfo, CrashPoints } from '../../src/index.ts';
import { TOOL_TIMINGS } from './timings.ts';

export const CRASH_POINTS = ['B0', 'B1', 'B2', 'B3', 'B4', 'B5', 'B6', 'B7', 'B8'] as const satisfies CrashPoint[];

/** What a boundary is met in: rows before they are runs, reads, and each of the two writes. */
export type Place = 'rows' | 'reads' | 'payments.refund' | 'mail.notify';

const kill = z.object({
  point: z.enum(CRASH_POINTS),
  place: z.enum(['rows', 'reads', 'payments.refund', 'mail.notify']),
  runId: z.string(),
  operationId: z.string().nullable(),
  pid: z.int(),
  atMs: z.number(),
});
export type Kill = z.infer<typeof kill>;

export interface CrashPlanOptions {
  point: CrashPoint;
  /** Per place. */
  kills: number;
  /** JSON lines, one per kill done. */
  log: string;
}

export interface CrashPlan {
  crashPoints: CrashPoints;
  /** How long the provider shall hold a call, so that the kill comes before its effect. */
  holdMs: (call: { tool: string; runId: string }) => number;
}

/**
 * From the call to the kill at B3, and how long the provider then waits in all. Without a connection opened ahead a
 * mail is on its way only after the server's greeting, 100 ms after the call.
 */
const AT_B3: Partial<Record<Place, { killAfterMs: number; holdMs: number }>> = {
  'payments.refund': { killAfterMs: 30, holdMs: 150 },
  'mail.notify': { killAfterMs: 150, holdMs: 350 },
};
/** A call that is never answered is killed shortly before its time is over: its effect is done, its answer not read. */
const B4_AFTER_MS = TOOL_TIMINGS.timeoutMs - 100;

/** The places in which a boundary has to be met. */
export function placesOf(point: CrashPoint): Place[] {
  if (point === 'B0') return ['rows'];
  return point === 'B1' ? ['reads'] : ['payments.refund', 'mail.notify'];
}

export function readKills(log: string): Kill[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => kill.parse(JSON.parse(line)));
}

/** In how many different runs a boundary was met, per place. */
export function countKills(kills: Kill[], point: CrashPoint): Map<Place, number> {
  return new Map(
    placesOf(point).map((place) => [
      place,
      new Set(kills.filter((done) => done.point === point && done.place === place).map((done) => done.runId)).size,
    ]),
  );
}

export function createCrashPlan({ point, kills, log }: CrashPlanOptions): CrashPlan {
  const done = readKills(log);
  const counts = countKills(done, point);
  const killed = new Set(
    done.filter((earlier) => earlier.point === point).map(({ place, runId }) => `${place} ${runId}`),
  );
  const timers = new Map<string, NodeJS.Timeout>();

  const wants = ({ runId, tool }: { runId: string; tool?: string }): Place | null => {
    const place = placeOf(point, tool);
    if (!place || (counts.get(place) ?? 0) >= kills || killed.has(`${place} ${runId}`)) return null;
    return place;
  };

  const die = (
    place: Place,
    { runId, operationId = null }: Omit<CrashPointInfo, 'operationId'> & { operationId?: string | null },
  ): void => {
    const record: Kill = { point, place, runId, operationId, pid: process.pid, atMs: Date.now() };
    appendFileSync(log, `${JSON.stringify(record)}\n`);
    process.kill(process.pid, 'SIGKILL');
  };

  const dieLater = (place: Place, info: CrashPointInfo, delayMs: number): void => {
    timers.set(
      info.operationId ?? '',
      setTimeout(() => die(place, info), delayMs),
    );
  };

  return {
    holdMs(call) {
      const place = point === 'B3' ? wants(call) : null;
      return (place && AT_B3[place]?.holdMs) ?? 0;
    },
    crashPoints: {
      reached(reached, info) {
        // An answer has come: the call is no longer under way.
        if (reached === 'B4') clearTimeout(timers.get(info.operationId ?? ''));
        const place = wants(info);
        if (!place) return;
        if (reached === 'B3' && point === 'B3') return dieLater(place, info, AT_B3[place]?.killAfterMs ?? 0);
        if (reached === 'B3' && point === 'B4') return dieLater(place, info, B4_AFTER_MS);
        if (reached === point) die(place, info);
      },
      wantsB6: (info) => point === 'B6' && wants(info) !== null,
    },
  };
}

function placeOf(point: CrashPoint, tool: string | undefined): Place | null {
  if (point === 'B0') return 'rows';
  if (point === 'B1') return tool === 'payments.order' || tool === 'payments.refund-status' ? 'reads' : null;
  return tool === 'payments.refund' || tool === 'mail.notify' ? tool : null;
}
