/** From `send` to its verdict: the door, the inbox, and the wait for whoever reduces it. */
import type { Ids } from '../clock.ts';
import { PawlError } from '../errors.ts';
import type { Store, StoredRun } from '../persistence/store.ts';
import type { InboxBody, IncomingEvent, Json, RunRecord, StoredVerdict } from '../records.ts';
import type { AgentRegistry } from './agents.ts';
import type { Changes } from './changes.ts';
import { checkId } from './ids.ts';

/** The answer to one event; `allowed` are the events the run takes now. */
export interface Verdict {
  verdict: 'applied' | 'refused' | 'deferred' | 'dropped' | 'duplicate' | 'accepted';
  sequence: number;
  state: Json;
  reason?: string;
  allowed: string[];
}

export interface SendOptions {
  /** An event with an id that was accepted before is answered `duplicate`. Default: a new id. */
  eventId?: string;
  by?: string;
  roles?: string[];
  /** Refused `stale_sequence` unless the run is at this sequence when the event is reduced. */
  expectedSequence?: number;
  /** How long to wait for the verdict; 0 returns `accepted` at once. Default 5,000. */
  waitMs?: number;
}

export interface DeliveryContext {
  store: Store;
  registry: AgentRegistry;
  changes: Changes;
  ids: Ids;
  hint(runId: string): void;
}

const DEFAULT_WAIT_MS = 5_000;

/** @throws RUN_NOT_FOUND, RECORD_UNREADABLE, INVALID_ID, EVENT_TOO_LARGE, INBOX_FULL */
export async function sendEvent(
  context: DeliveryContext,
  runId: string,
  event: { type: string; [key: string]: unknown },
  options: SendOptions,
): Promise<Verdict> {
  const run = await loadReadable(context.store, runId);
  const door = atTheDoor(context.registry, run, event);
  const incoming: IncomingEvent = {
    eventId: checkEventId(options.eventId ?? context.ids.next()),
    by: options.by ?? null,
    body: { kind: 'event', event: door.event },
    ...(options.roles === undefined ? {} : { roles: options.roles }),
    ...(options.expectedSequence === undefined ? {} : { expectedSequence: options.expectedSequence }),
  };
  return deliver(context, run, incoming, options.waitMs ?? DEFAULT_WAIT_MS, door.refused);
}

/** Ids that receipts arrive under are not for callers: an event with one would keep the receipt out. */
function checkEventId(eventId: string): string {
  if (!/^(receipt|resolve):/.test(checkId('eventId', eventId))) return eventId;
  throw new PawlError(
    'INVALID_ID',
    `eventId '${eventId.slice(0, 60)}' begins with a word that receipts arrive under.`,
    {
      details: { what: 'eventId' },
    },
  );
}

/** A cancel or release: same inbox, same order, same kind of verdict. */
export async function sendCommand(
  context: DeliveryContext,
  runId: string,
  body: InboxBody,
  options: { by: string; eventId?: string; waitMs?: number },
): Promise<Verdict> {
  const run = await loadReadable(context.store, runId);
  const eventId = checkEventId(options.eventId ?? `${body.kind}:${context.ids.next()}`);
  return deliver(context, run, { eventId, by: options.by, body }, options.waitMs ?? DEFAULT_WAIT_MS, undefined);
}

async function deliver(
  context: DeliveryContext,
  run: StoredRun,
  incoming: IncomingEvent,
  waitMs: number,
  refused: string | undefined,
): Promise<Verdict> {
  const { store, hint } = context;
  const { runId } = run;
  const state = run.record?.machine.value ?? null;
  const accepted =
    refused === undefined
      ? await store.accept(runId, incoming)
      : await store.accept(runId, incoming, { reason: refused, state });
  switch (accepted.kind) {
    case 'missing':
      throw notFound(runId);
    case 'final':
      return verdictOf(accepted.verdict, accepted.verdict.verdict, run);
    case 'accepted':
      hint(runId);
      return awaitVerdict(context, run, incoming.eventId, waitMs);
    default: {
      if (accepted.verdict) return verdictOf(accepted.verdict, 'duplicate', run);
      const verdict = await awaitVerdict(context, run, incoming.eventId, waitMs);
      return { ...verdict, verdict: 'duplicate' };
    }
  }
}

/** Waits until the event has a stored verdict; `accepted` when nobody has reduced it within `waitMs`. */
export async function awaitVerdict(
  context: DeliveryContext,
  run: StoredRun,
  eventId: string,
  waitMs: number,
): Promise<Verdict> {
  const { store, changes } = context;
  const { runId } = run;
  const found = waitMs <= 0 ? null : await changes.until(runId, () => store.verdict(runId, eventId), waitMs);
  const now = (await store.load(runId)) ?? run;
  if (found) return verdictOf(found, found.verdict, now);
  return {
    verdict: 'accepted',
    sequence: now.facts.sequence,
    state: now.record?.machine.value ?? null,
    allowed: now.record?.allowed ?? [],
  };
}

function verdictOf(stored: StoredVerdict, verdict: Verdict['verdict'], run: StoredRun): Verdict {
  return {
    verdict,
    sequence: stored.sequence,
    state: stored.state,
    ...(stored.reason === undefined ? {} : { reason: stored.reason }),
    allowed: run.record?.allowed ?? [],
  };
}

/** What can be refused without the machine: an unknown type, a payload that does not fit, a sender who may not. */
function atTheDoor(
  registry: AgentRegistry,
  run: StoredRun,
  event: { type: string; [key: string]: unknown },
): { event: { type: string; [key: string]: Json }; refused?: string } {
  const { type, ...payload } = event as { type: unknown } & Record<string, unknown>;
  if (typeof type !== 'string' || type === '') {
    throw new PawlError('INVALID_ARGUMENT', `An event for run ${run.runId} has no type.`, {
      details: { runId: run.runId },
    });
  }
  const bare = { type: type.slice(0, 200) };
  const agent = run.record && registry.find(run.record.agent, run.record.agentVersion);
  if (!agent) {
    throw new PawlError(
      'AGENT_UNKNOWN',
      `Run ${run.runId} belongs to agent '${run.summary.agent}' version ${run.summary.agentVersion}, which is not registered here.`,
      { details: { runId: run.runId, agent: run.summary.agent } },
    );
  }
  const { events } = agent.definition;
  if (!events.has(type)) return { event: bare, refused: 'unknown_event' };
  if (!agent.callerEvents.includes(type)) return { event: bare, refused: 'forbidden' };
  const parsed = events.parsePayload(type, payload);
  return parsed.ok ? { event: parsed.event } : { event: bare, refused: 'invalid_payload' };
}

/** @throws RUN_NOT_FOUND, INVALID_ID */
export async function loadRun(store: Store, runId: string): Promise<StoredRun> {
  const run = await store.load(checkId('runId', runId));
  if (!run) throw notFound(runId);
  return run;
}

/** A run that somebody is to act on. @throws RUN_NOT_FOUND, INVALID_ID, RECORD_UNREADABLE */
export async function loadReadable(store: Store, runId: string): Promise<StoredRun & { record: RunRecord }> {
  const run = await loadRun(store, runId);
  const { record, unreadable } = run;
  if (record !== null) return { ...run, record };
  throw new PawlError(
    'RECORD_UNREADABLE',
    `The record of run ${runId} cannot be read (${unreadable ?? 'unknown reason'}), so nothing can act on it. Its bytes are kept.`,
    { details: { runId, reason: unreadable } },
  );
}

export function notFound(runId: string): PawlError {
  return new PawlError('RUN_NOT_FOUND', `There is no run ${runId}; start it, or check the id.`, { details: { runId } });
}
