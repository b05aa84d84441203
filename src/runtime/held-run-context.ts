/** What the holder of a run needs from its surroundings. */
import type { Clock, Ids } from '../clock.ts';
import type { Store } from '../persistence/store.ts';
import type { Durability } from '../records.ts';
import type { Policy } from '../tools/policy.ts';
import type { CrashPoints } from './crash-points.ts';
import type { Logger } from './logger.ts';

export interface HeldRunContext {
  store: Store;
  clock: Clock;
  ids: Ids;
  random(): number;
  policy: Policy;
  artifacts: unknown;
  logger: Logger;
  leaseMs: number;
  durability: Durability;
  crashPoints: CrashPoints | undefined;
  /** A commit of this run was applied; when it was released, in how long it is due again (null: not by itself). */
  committed(runId: string, released: { dueInMs: number | null } | null): void | Promise<void>;
}
