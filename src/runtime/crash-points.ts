/**
 * Named instants at which a test may stop the process (DESIGN 3.1). The hook is awaited; in production there is none.
 *
 * B0 before `create` · B1 a read's answer read, not committed · B2 intent committed, tool not called · B3 call under way ·
 * B4 answered, answer not read · B5 answer read, its commit not sent · B6 receipt stored by `receive`, not reduced ·
 * B7 commit applied, no hint yet · B8 hint published.
 */
export type CrashPoint = 'B0' | 'B1' | 'B2' | 'B3' | 'B4' | 'B5' | 'B6' | 'B7' | 'B8';

export interface CrashPointInfo {
  runId: string;
  operationId?: string;
  tool?: string;
}

/** For `B6` the runtime asks first: `true` makes it store the receipt by `receive` before the point is reached. */
export interface CrashPoints {
  reached(point: CrashPoint, info: CrashPointInfo): void | Promise<void>;
  wantsB6?(info: CrashPointInfo): boolean;
}
