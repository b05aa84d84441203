/**
 * Re-runs the pure steps of a run over its ledger and compares every digest; it cannot call a tool.
 *
 * What must hold: the store's own digests over its bytes; each `transitioned` entry gives its `snapshotDigest` again;
 * each intent its operationId; each terminal receipt of the ledger is still stored with its outcome; the record holds the
 * state that the last entry leads to.
 */
import { canonicalJson } from '../json.ts';
import { isPawlError, messageOf, PawlError } from '../errors.ts';
import type { Effect } from '../machines/effects.ts';
import { chainDigest, toMachineState } from '../machines/snapshot.ts';
import { completionStep, eventStep, initialStep, type Step } from '../machines/step.ts';
import type { Store, StoredRun } from '../persistence/store.ts';
import type { Fault, Invocation, Json, JsonObject, LedgerEntry, MachineState, Receipt } from '../records.ts';
import { operationIdentity } from '../tools/identity.ts';
import type { AgentRegistry, RegisteredAgent } from './agents.ts';

export interface Verification {
  runId: string;
  ok: boolean;
  /** The last sequence that was verified, or the stored one. */
  sequence: number;
  divergedAt?: { sequence: number; what: string };
}

export async function verifyRun(store: Store, registry: AgentRegistry, runId: string): Promise<Verification> {
  const run = await store.load(runId);
  if (!run) throw new PawlError('RUN_NOT_FOUND', `There is no run ${runId}.`, { details: { runId } });
  const [damage] = await store.audit(runId);
  if (damage) return diverged(runId, damage.sequence, damage.what);
  if (run.record === null) return diverged(runId, run.facts.sequence, `record_unreadable: ${run.unreadable ?? ''}`);
  const agent = registry.find(run.record.agent, run.record.agentVersion);
  if (!agent) {
    throw new PawlError(
      'AGENT_UNKNOWN',
      `Run ${runId} needs agent '${run.record.agent}' version ${run.record.agentVersion}.`,
      {
        details: { runId, agent: run.record.agent, agentVersion: run.record.agentVersion },
      },
    );
  }
  const replay = new Replay(agent, run);
  for await (const entry of store.read(runId)) {
    const what = replay.take(entry);
    if (what !== null) return diverged(runId, entry.sequence, what);
  }
  for (const receipt of replay.receipts.values()) {
    const stored = await store.receipt(runId, receipt.operationId);
    if (stored?.outcome === receipt.outcome) continue;
    const what = `the receipt of operation ${receipt.operationId} (${receipt.outcome}) is ${stored ? stored.outcome : 'missing'}`;
    return diverged(runId, receipt.sequence, what);
  }
  const what = replay.compareEnd();
  if (what !== null) return diverged(runId, replay.sequence, what);
  return { runId, ok: true, sequence: replay.sequence };
}

function diverged(runId: string, sequence: number, what: string): Verification {
  return { runId, ok: false, sequence, divergedAt: { sequence, what } };
}

class Replay {
  sequence = 0;
  /** Terminal outcomes by operation, the first one that was recorded. */
  readonly receipts = new Map<string, { operationId: string; outcome: Receipt['outcome']; sequence: number }>();
  readonly #agent: RegisteredAgent;
  readonly #run: StoredRun;
  #snapshot: Step['snapshot'] | null = null;
  #machine: MachineState | null = null;
  #invocations: Record<string, Invocation> = {};
  #digest = '';

  constructor(agent: RegisteredAgent, run: StoredRun) {
    this.#agent = agent;
    this.#run = run;
  }

  /** What is wrong with an entry, or null. */
  take(entry: LedgerEntry): string | null {
    try {
      switch (entry.kind) {
        case 'transitioned':
          return this.#transition(entry);
        case 'intended':
          return this.#intend(entry);
        case 'received':
          return this.#receive(entry);
        case 'cancel_requested':
          this.#invocations = {};
          return null;
        default:
          return null;
      }
    } catch (error) {
      return `the step threw: ${isPawlError(error) ? error.code : 'Error'} ${messageOf(error)}`;
    }
  }

  #transition(entry: LedgerEntry): string | null {
    if (entry.sequence !== this.sequence + 1) {
      return `sequence ${entry.sequence} follows ${this.sequence}; a transition is missing or out of order`;
    }
    const event = entry['event'] as JsonObject & { type: string };
    const before = this.#machine === null ? null : { machine: this.#machine, invocations: this.#invocations };
    const invocationId = entry.cause?.invocationId;
    const step = this.#step(entry, event, invocationId);
    if (typeof step === 'string') return step;
    const machine = toMachineState(this.#agent.definition.durable, step.snapshot);
    const invocations = { ...this.#invocations };
    if (invocationId !== undefined) delete invocations[invocationId];
    for (const effect of step.effects) follow(invocations, effect, entry.atMs);
    if (machine.status !== 'active') for (const id of Object.keys(invocations)) delete invocations[id];
    const digest = chainDigest(this.#digest, before, { machine, invocations });
    if (digest !== entry['snapshotDigest']) {
      return `the step gives another state than recorded (${canonicalJson(machine.value)}, recorded ${canonicalJson((entry['to'] ?? null) as Json)})`;
    }
    this.#snapshot = step.snapshot;
    this.#machine = machine;
    this.#invocations = invocations;
    this.#digest = digest;
    this.sequence = entry.sequence;
    return null;
  }

  #step(entry: LedgerEntry, event: JsonObject & { type: string }, invocationId: string | undefined): Step | string {
    const { durable } = this.#agent.definition;
    const at = { runId: this.#run.runId, sequence: entry.sequence, atMs: entry.atMs };
    if (this.#snapshot === null) return initialStep(durable, event['input'] ?? null, at);
    if (invocationId === undefined) {
      const step = eventStep(durable, this.#snapshot, event, at);
      return step.applied || entry.cause?.timerId !== undefined ? step : `the chart does not take '${event.type}' here`;
    }
    const invocation = this.#invocations[invocationId];
    if (!invocation) return `invocation ${invocationId} was not live`;
    const completion =
      'error' in event ? { error: event['error'] as unknown as Fault } : { output: event['output'] ?? null };
    return completionStep(durable, this.#snapshot, invocation, completion, at);
  }

  #intend(entry: LedgerEntry): string | null {
    const tool = this.#agent.toolsByName.get(entry['tool'] as string);
    if (!tool) return `tool '${entry['tool'] as string}' is not known`;
    const { runId, record } = this.#run;
    const identity = operationIdentity({
      tenant: record?.tenant ?? '',
      runId,
      tool,
      input: (entry['input'] ?? null) as Json,
      invocationId: entry.cause?.invocationId ?? '',
    });
    if (!identity.ok) return `the intent has no identity: ${identity.error.message}`;
    const operationId = identity.identity.operationId(entry['generation'] as number);
    return operationId === entry['operationId']
      ? null
      : `the intent gives operation ${operationId}, recorded ${entry['operationId'] as string}`;
  }

  #receive(entry: LedgerEntry): string | null {
    const outcome = entry['outcome'] as Receipt['outcome'];
    const operationId = entry['operationId'] as string;
    const terminal = outcome === 'succeeded' || outcome === 'failed';
    if (terminal && entry['unsettled'] !== true && !this.receipts.has(operationId)) {
      this.receipts.set(operationId, { operationId, outcome, sequence: entry.sequence });
    }
    return null;
  }

  compareEnd(): string | null {
    const { record, facts } = this.#run;
    if (record === null || this.#machine === null) return 'there is no initial transition';
    if (facts.sequence !== this.sequence)
      return `the ledger ends at sequence ${this.sequence}, the run is at ${facts.sequence}`;
    if (record.snapshotDigest !== this.#digest)
      return 'the record holds another snapshot digest than the ledger leads to';
    const { error: _stored, ...stored } = record.machine;
    const { error: _derived, ...derived } = this.#machine;
    return canonicalJson(stored as unknown as Json) === canonicalJson(derived as unknown as Json)
      ? null
      : 'the record holds another state than the ledger leads to';
  }
}

function follow(invocations: Record<string, Invocation>, effect: Effect, atMs: number): void {
  if (effect.kind === 'stop') delete invocations[effect.invocationId];
  if (effect.kind !== 'start' || effect.logic === 'child') return;
  const { invocationId, id, src, input } = effect;
  invocations[invocationId] = { invocationId, id, src, kind: effect.logic, input, startedAtMs: atMs };
}
