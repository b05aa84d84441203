/** What the worker is told on its command line, and what it tells its parent. */
import { z } from 'zod';
import { CRASH_POINTS } from './crash-plan.ts';

export const workerSettings = z.object({
  store: z.string(),
  /** The CSV, read from its beginning at each start of the worker. */
  input: z.string(),
  rows: z.number().nullable(),
  /** Rows come in at this rate, counted from `startedAtMs`, however often the worker is killed. */
  rowsPerSecond: z.number(),
  startedAtMs: z.number(),
  paymentUrl: z.string(),
  smtpUrl: z.string(),
  mailQueryUrl: z.string(),
  dedupe: z.boolean(),
  reconcile: z.boolean(),
  leaseMs: z.int(),
  crash: z.object({ point: z.enum(CRASH_POINTS), kills: z.int(), log: z.string() }).nullable(),
});
export type WorkerSettings = z.infer<typeof workerSettings>;

export const workerMessage = z.discriminatedUnion('kind', [
  /** The first claim after this start. */
  z.object({ kind: z.literal('claimed') }),
  /** Every row of the file is a run now. */
  z.object({ kind: z.literal('fed') }),
  /** A row of an order that has a run already, with another content. */
  z.object({ kind: z.literal('refused'), line: z.int(), reason: z.string() }),
]);
export type WorkerMessage = z.infer<typeof workerMessage>;
