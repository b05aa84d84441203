/** Which operation an invocation waits for: a new one, a joined one, a reopened one, or a stored receipt (DESIGN 3.2). */
import { operationIdentity } from '../tools/identity.ts';
import { recoveryOf, type ToolDefinition } from '../tools/tool.ts';
import { parseToolInput } from '../tools/input.ts';
import type {
  Fault,
  Invocation,
  Json,
  Operation,
  OperationStatus,
  Receipt,
  RunRecord,
  StoredOperation,
} from '../records.ts';
import type { Draft } from './draft.ts';

interface Identity {
  keyDigest: string;
  inputDigest: string;
  operationId(generation: number): string;
}

/** Finds or makes the operation of a tool invocation that was just started or unblocked. */
export function placeInvocation(draft: Draft, invocationId: string): void {
  const invocation = draft.record.invocations[invocationId];
  if (!invocation) return;
  const tool = draft.base.agent.toolsBySrc.get(invocation.src);
  if (!tool) throw new TypeError(`no tool for src '${invocation.src}'`);
  const fail = (error: Fault): void => draft.complete({ invocationId, error });

  const parsed = parseToolInput(tool, invocation.input);
  if (!parsed.ok) return fail(parsed.error);
  const identified = operationIdentity({
    tenant: draft.record.tenant,
    runId: draft.record.runId,
    tool,
    input: parsed.input,
    invocationId,
  });
  if (!identified.ok) return fail(identified.error);
  const identity = identified.identity;

  const open = Object.values(draft.record.operations).find((operation) => operation.key === identity.keyDigest);
  if (open && !yields(draft, open, identity)) return meetOpen(draft, invocation, open, identity, fail);
  meetKnown(draft, invocation, tool, parsed.input, identity, fail);
}

/** An operation that was just left and has not happened gives way to the same action with other input. */
function yields(draft: Draft, open: Operation, identity: Identity): boolean {
  const { operationId, joined, inputDigest } = open;
  if (joined.length > 0 || inputDigest === identity.inputDigest) return false;
  abandon(draft, operationId);
  return draft.operation(operationId) === undefined;
}

/** Places the invocations again whose operation of another owner is not in their way any more. */
export function unblock(draft: Draft): void {
  const free = draft.record.blocked.filter((waiting) => !isInTheWay(draft.record, waiting));
  if (free.length === 0) return;
  draft.record.blocked = draft.record.blocked.filter((waiting) => isInTheWay(draft.record, waiting));
  for (const { invocationId } of free) placeInvocation(draft, invocationId);
}

export function isInTheWay(record: RunRecord, { operationId }: RunRecord['blocked'][number]): boolean {
  const status = record.operations[operationId]?.status;
  return status === 'escalated' || status === 'compensating';
}

function meetOpen(
  draft: Draft,
  invocation: Invocation,
  open: Operation,
  identity: Identity,
  fail: (error: Fault) => void,
): void {
  const { invocationId } = invocation;
  if (open.status === 'compensating' || open.status === 'escalated') {
    return block(draft, invocation, open.operationId, open.status);
  }
  if (open.inputDigest !== identity.inputDigest) return fail(duplicate(open.operationId, open.tool, open.status, null));
  draft.changeOperation(open.operationId, { joined: [...open.joined, invocationId] });
  joinOperation(draft, invocation, open.operationId);
  draft.entry('joined', { operationId: open.operationId, invocationId });
}

function meetKnown(
  draft: Draft,
  invocation: Invocation,
  tool: ToolDefinition,
  input: Json,
  identity: Identity,
  fail: (error: Fault) => void,
): void {
  const { invocationId } = invocation;
  const known = draft.knownByKey(identity.keyDigest);
  if (!known?.key) return intend(draft, invocation, tool, input, identity, 1, 0);
  const { generation, operationId, inputDigest } = known.key;
  const status = statusOf(known);
  switch (status) {
    case 'succeeded': {
      if (inputDigest !== identity.inputDigest || !known.receipt) {
        return fail(duplicate(operationId, tool.name, status, known.receipt));
      }
      joinOperation(draft, invocation, operationId);
      draft.entry('joined', { operationId, invocationId, outcome: status });
      if (known.closed?.status !== 'succeeded') draft.rememberEffect(operationId, tool.name, tool.effect);
      return draft.complete({ invocationId, output: known.receipt.output ?? null });
    }
    case 'not_executed':
    case 'withdrawn':
      // A key cannot be closed and taken again in one commit.
      if (draft.closes.some((closed) => closed.operationId === operationId)) {
        return block(draft, invocation, operationId, status);
      }
      // Proved absent: reopened under the same id, so that a late arrival still meets the provider's key.
      return intend(draft, invocation, tool, input, identity, generation, known.closed?.attempts ?? 0);
    case 'failed':
    case 'compensated':
      return intend(draft, invocation, tool, input, identity, generation + 1, 0);
    default:
      return block(draft, invocation, operationId, status ?? 'open elsewhere');
  }
}

/** A stored terminal receipt outranks the stored status: a late arrival is what happened. */
function statusOf({ closed, receipt }: StoredOperation): OperationStatus | undefined {
  const late = closed?.status === 'not_executed' || closed?.status === 'withdrawn' || closed === null;
  return late && receipt ? receipt.outcome : closed?.status;
}

function intend(
  draft: Draft,
  invocation: Invocation,
  tool: ToolDefinition,
  input: Json,
  identity: Identity,
  generation: number,
  attemptCount: number,
): void {
  const operationId = identity.operationId(generation);
  const { keyDigest, inputDigest } = identity;
  draft.map('operations')[operationId] = {
    operationId,
    key: keyDigest,
    generation,
    tool: tool.name,
    toolVersion: tool.version,
    kind: tool.effect,
    recovery: recoveryOf(tool),
    scope: tool.scope,
    status: 'intended',
    input,
    inputDigest,
    joined: [invocation.invocationId],
    attempts: [],
    attemptCount,
    notBeforeMs: 0,
    soft: false,
    tries: 0,
    crashes: 0,
    orphaned: false,
    reconciles: 0,
    unknownSinceMs: null,
    intendedAtMs: draft.nowMs,
    intent: draft.sequence,
  };
  joinOperation(draft, invocation, operationId);
  draft.keys.push({ keyDigest, operationId, generation, inputDigest, attempts: attemptCount });
  draft.entry(
    'intended',
    { operationId, tool: tool.name, input, generation },
    { invocationId: invocation.invocationId },
  );
}

function joinOperation(draft: Draft, invocation: Invocation, operationId: string): void {
  draft.map('invocations')[invocation.invocationId] = { ...invocation, operationId };
}

function block(draft: Draft, invocation: Invocation, operationId: string, status: string): void {
  draft.list('blocked').push({ invocationId: invocation.invocationId, operationId });
  draft.entry('blocked', { operationId, status }, { invocationId: invocation.invocationId });
}

function duplicate(operationId: string, tool: string, status: string, receipt: Receipt | null): Fault {
  return {
    code: 'DUPLICATE_OPERATION',
    message: `Operation ${operationId} of tool '${tool}' has the same business key and other input; it is ${status}.`,
    details: { operationId, status, receipt: receipt as unknown as Json },
  };
}

/** Takes an invocation out of the run. */
export function leaveInvocation(draft: Draft, invocationId: string): void {
  const invocation = draft.record.invocations[invocationId];
  if (!invocation) return;
  delete draft.map('invocations')[invocationId];
  if (draft.record.blocked.some((waiting) => waiting.invocationId === invocationId)) {
    draft.record.blocked = draft.record.blocked.filter((waiting) => waiting.invocationId !== invocationId);
  }
  if (invocation.operationId === undefined) return;
  const operation = draft.operation(invocation.operationId);
  if (!operation) return;
  const joined = operation.joined.filter((id) => id !== invocationId);
  draft.changeOperation(operation.operationId, { joined });
  if (joined.length === 0) draft.left.add(operation.operationId);
}

/** Once nothing follows: an operation that was left and not joined again is given up, or settled first. */
export function giveUpLeft(draft: Draft): void {
  for (const operationId of draft.left) {
    if (draft.operation(operationId)?.joined.length === 0) abandon(draft, operationId);
  }
  draft.left.clear();
}

function abandon(draft: Draft, operationId: string): void {
  const operation = draft.operation(operationId);
  if (!operation) return;
  draft.aborts.add(operationId);
  switch (operation.status) {
    case 'intended':
    case 'blocked':
    case 'not_executed':
      withdraw(draft, operationId);
      break;
    default:
      // A read has no effect: nobody needs its answer. A write in flight must be settled.
      if (operation.kind !== 'read') return;
      if (operation.status === 'escalated') draft.moveOperation(operationId, 'release');
      withdraw(draft, operationId);
  }
}

/** Withdraws an operation that is proved not to have happened; a soft absence is asked about again after its window. */
export function withdraw(draft: Draft, operationId: string): void {
  const operation = draft.operation(operationId);
  if (!operation) return;
  if (operation.soft) {
    const tool = draft.base.agent.toolsByName.get(operation.tool);
    draft.moveOperation(operationId, 'unknown', {
      notBeforeMs: windowEndMs(operation, tool),
      unknownSinceMs: operation.unknownSinceMs ?? draft.nowMs,
    });
    return;
  }
  const inFlight = operation.status === 'attempted' || operation.status === 'unknown';
  draft.closeOperation(operationId, inFlight ? 'abandon' : 'withdraw', null);
  draft.entry('withdrawn', { operationId });
}

/** Store time after which no written attempt of an operation can still land, given a process that is not paused longer. */
export function windowEndMs(operation: Operation, tool: ToolDefinition | undefined): number {
  const last = operation.attempts.at(-1);
  if (!last || !tool) return 0;
  return last.atMs + tool.timeoutMs + tool.settleAfterMs;
}
