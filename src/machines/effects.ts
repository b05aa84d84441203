/** What a macrostep asks for, as data. Carried out in this order: stop, disarm, start, arm, send, emit, log. */
import type { Json } from '../records.ts';
import type { LogicKind } from './logic.ts';

export type Effect =
  /** The invocation was left. It may already be settled: then there is nothing to do. */
  | { kind: 'stop'; invocationId: string }
  | { kind: 'disarm'; timerId: string }
  /** `invocationId` is `<sequence>.<index>`; `id` the chart's invoke id; `src` the registered name. */
  | { kind: 'start'; invocationId: string; id: string; src: string; logic: LogicKind | 'child'; input: Json }
  /** Arming a timer id that is armed replaces it. `delayMs` is finite and ≥ 0, of any length. */
  | { kind: 'arm'; timerId: string; timer: 'after' | 'raise' | 'send'; delayMs: number; event: Json; to?: string }
  /** `to` is an invocationId, `'parent'` or `'self'`. */
  | { kind: 'send'; to: string; event: Json }
  | { kind: 'emit'; event: Json }
  | { kind: 'log'; label: string | null; value: Json };
