/** Pawl: LLM agents as XState machines whose transitions are committed before anything is done in the world. */
export { ERROR_CODES, isPawlError, PawlError, type ErrorCode } from './errors.ts';
export type { Clock, Ids } from './clock.ts';
export type {
  Commit,
  CommitResult,
  Durability,
  EntryKind,
  Fault,
  InboxEvent,
  Json,
  JsonObject,
  LedgerEntry,
  Operation,
  Receipt,
  RunFacts,
  RunRecord,
  RunStatus,
} from './records.ts';
export { defineEvents, type EventsOf } from './machines/define-events.ts';
export {
  defineAgent,
  type AgentContext,
  type AgentDefinition,
  type AgentEvent,
  type AgentInput,
  type AgentName,
  type AgentOutput,
  type AgentStateValue,
} from './machines/define-agent.ts';
export { now, random } from './machines/determinism.ts';
export { tool, type RunInfo } from './tools/tool.ts';
export { decide } from './tools/decide.ts';
export { approval } from './tools/approval.ts';
export { didNotHappen, happened, NotExecuted, toolError, ToolFailure, unknown } from './tools/outcome.ts';
export type { Policy } from './tools/policy.ts';
export { openStore } from './persistence/open-store.ts';
export type { Claim, Lease, ListFilter, Store, StoredRun } from './persistence/store.ts';
export { createRuntime, type RuntimeOptions } from './runtime/create-runtime.ts';
export type { CrashPoint, CrashPointInfo, CrashPoints } from './runtime/crash-points.ts';
export type { SendOptions, Verdict } from './runtime/deliver.ts';
export type { Dispatcher } from './runtime/dispatcher.ts';
export type { Logger } from './runtime/logger.ts';
export type { Runtime, StartOptions, WaitOptions } from './runtime/runtime.ts';
export type { Verification } from './runtime/verify.ts';
export type { RunView } from './runtime/view.ts';
export type { Worker } from './runtime/worker.ts';
