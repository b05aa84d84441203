/** The shapes of `--json` as the public contract writes them; more fields may be there. */
import { z } from 'zod';

const status = z.enum(['running', 'waiting', 'needs_human', 'done', 'failed', 'cancelled']);
const json = z.json();
const next = z.object({
  kind: z.enum([
    'await_human',
    'reconcile',
    'reduce',
    'execute',
    'decide',
    'await_approval',
    'await_child',
    'await_event',
    'await_timer',
    'none',
  ]),
  operationId: z.string().optional(),
  tool: z.string().optional(),
  allowedEvents: z.array(z.string()),
  reason: z.string(),
});
const lastConfirmedEffect = z
  .object({ operationId: z.string(), tool: z.string(), outcome: z.string(), receiptDigest: z.string(), atMs: z.int() })
  .nullable();
const doNotRepeat = z.array(
  z.object({
    operationId: z.string(),
    tool: z.string(),
    outcome: z.enum(['succeeded', 'attempted', 'unknown']),
    atMs: z.int(),
  }),
);

export const runView = z.object({
  runId: z.string(),
  agent: z.string(),
  agentVersion: z.int(),
  tenant: z.string(),
  status,
  state: json,
  tags: z.array(z.string()),
  sequence: z.int(),
  goal: z.string(),
  context: json,
  output: json,
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  lastConfirmedEffect,
  openOperations: z.array(
    z.object({
      operationId: z.string(),
      tool: z.string(),
      status: z.string(),
      attempts: z.int(),
      idempotencyKey: z.string(),
      inputDigest: z.string(),
      since: z.int(),
    }),
  ),
  doNotRepeat,
  next,
  position: z.object({ state: json, sequence: z.int(), invocationId: z.string().nullable() }),
  timers: z.array(z.object({ id: z.string(), dueAtMs: z.int() })),
  inbox: z.object({ waiting: z.int(), deferred: z.array(z.object({ eventId: z.string(), type: z.string() })) }),
  waitingFor: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  input: json,
  createdAtMs: z.int(),
  updatedAtMs: z.int(),
});

export const runList = z.object({ runs: z.array(runView), cursor: z.string().nullable() });

export const verdict = z.object({
  verdict: z.enum(['applied', 'refused', 'deferred', 'dropped', 'duplicate', 'accepted']),
  sequence: z.int(),
  state: json,
  reason: z.string().optional(),
  allowed: z.array(z.string()),
});

export const verification = z.object({
  ok: z.boolean(),
  runs: z.array(
    z.object({
      runId: z.string(),
      ok: z.boolean(),
      sequence: z.int(),
      divergedAt: z.object({ sequence: z.int(), what: z.string() }).optional(),
    }),
  ),
});

export const ledgerEntry = z.object({
  runId: z.string(),
  sequence: z.int(),
  index: z.int(),
  kind: z.string(),
  atMs: z.int(),
});

export const explanation = z.object({
  runId: z.string(),
  status,
  state: json,
  sentences: z.array(z.string().min(1)),
  lastConfirmedEffect,
  next,
  doNotRepeat,
  waitingFor: z.array(z.string()),
});

export const failure = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string().min(1), details: json }),
});
