/** Every duration of the example that must agree between a tool and the server behind it. */

export interface ServerTimings {
  /** How long the caller waits; a late effect comes after it. */
  callerTimeoutMs: number;
  /** The latest effect after the caller has given up or died. Must stay below the tool's `settleAfterMs`. */
  lateMs: number;
  /** The slowest answer that still counts as one. */
  slowMs: number;
  /** The query answers 503 for so long, per operation, from its first query on. */
  queryDownMs: number;
}

export interface ToolTimings {
  readTimeoutMs: number;
  /** For both writes. */
  timeoutMs: number;
  /**
   * A call leaves at the latest `timeoutMs` after its attempt; a provider that hears of it then works on it for
   * `callerTimeoutMs + lateMs` at most when its caller is frozen, not dead. The rest is margin for a busy machine.
   */
  settleAfterMs: number;
  reconcileForMs: number;
}

export const SERVER_TIMINGS: ServerTimings = { callerTimeoutMs: 600, lateMs: 300, slowMs: 300, queryDownMs: 2_000 };

export const TOOL_TIMINGS: ToolTimings = {
  readTimeoutMs: 600,
  timeoutMs: 600,
  settleAfterMs: 1_400,
  reconcileForMs: 30_000,
};
