/** One open operation in sentences: what may have happened, and its one next safe action (DESIGN 3.1 and 3.2). */
import type { StoredRun } from '../persistence/store.ts';
import type { Operation, Receipt, RunRecord } from '../records.ts';
import { isStopped } from '../runtime/draft.ts';
import type { RunView } from '../runtime/view.ts';
import { distanceText, jsonText, timeText } from './render-value.ts';
import { shorten } from './render-table.ts';

/** The operation that the next action names first, then those that need a human, then the others. */
export function compare(first: string | undefined): (a: Operation, b: Operation) => number {
  const rank = ({ operationId, status }: Operation): number =>
    operationId === first ? 0 : status === 'escalated' ? 1 : 2;
  return (a, b) => rank(a) - rank(b);
}

export function adviceFor(run: StoredRun, operation: Operation): string[] {
  const { operationId, tool, status } = operation;
  const receipt = run.facts.receipts[operationId];
  if (receipt && status !== 'escalated') return [storedReceipt(operation, receipt)];
  const absent = run.facts.receipts[`${operationId}#${operation.attemptCount}`];
  if (absent && status !== 'escalated' && status !== 'not_executed') return [storedReceipt(operation, absent)];
  const named = `${tool} (operation ${operationId})`;
  switch (status) {
    case 'intended':
      return [
        `${named} is intended and ${neverAttempted(operation)}: a worker performs it${whenPerformed(run, operation)}.`,
      ];
    case 'blocked':
      return [`${named} waits and was not attempted: ${operation.reason ?? 'another run has the same business key'}.`];
    case 'attempted':
      return attempted(run, operation, named);
    case 'unknown':
      return outcomeUnknown(run, operation, named);
    case 'not_executed':
      return [notExecuted(run, operation, named)];
    case 'escalated':
      return escalated(run, operation, named);
    default:
      return [`${named} is ${status}.`];
  }
}

function storedReceipt({ tool, operationId }: Operation, { outcome, error }: Receipt): string {
  const why = error ? `: ${error.message.replace(/\.$/, '')}` : '';
  return `The receipt of ${tool} (operation ${operationId}, ${outcome}${why}) is stored and not yet reduced: a worker reduces it; the tool is not called for it again.`;
}

function neverAttempted({ attemptCount }: Operation): string {
  return attemptCount === 0
    ? 'was never attempted, so it has not happened'
    : `its ${attemptCount} earlier attempt(s) were proved not to have happened`;
}

function attempted(run: StoredRun, operation: Operation, named: string): string[] {
  const { attemptCount, kind, recovery, operationId } = operation;
  if (kind !== 'write') {
    return [
      `Attempt ${attemptCount} of ${named}, which changes nothing in the world, has no answer stored: without one it is done again.`,
    ];
  }
  const atMs = operation.attempts.at(-1)?.atMs ?? operation.intendedAtMs;
  const may = `Attempt ${attemptCount} of ${named} was written at ${timeText(atMs)} and has no receipt: it may have happened.`;
  switch (recovery) {
    case 'reconcile':
      return [may, askProvider(operationId)];
    case 'repeat':
      return [may, repeatSameId(operationId)];
    default:
      return [
        may,
        'The provider can neither be asked nor given it twice: if the worker that called it is gone, a person has to find out what happened, and must not repeat it before.',
        `Once the run needs a human: ${resolveCommand(run.runId, operation)}`,
      ];
  }
}

function outcomeUnknown(run: StoredRun, operation: Operation, named: string): string[] {
  const { attemptCount, kind, recovery, operationId, reason } = operation;
  const why = reason === undefined ? '' : ` (${reason})`;
  if (kind !== 'write') return [`Attempt ${attemptCount} of ${named} had no answer${why}: it is done again.`];
  const may = `The outcome of attempt ${attemptCount} of ${named} is not known${why}: it may have happened.`;
  switch (recovery) {
    case 'reconcile':
      return [
        may,
        askProvider(operationId, notBefore(run, operation)),
        `Who knows what happened can settle it: ${resolveCommand(run.runId, operation)}`,
      ];
    case 'repeat':
      return [may, repeatSameId(operationId, notBefore(run, operation))];
    default:
      return [may, `A person has to say what happened: ${resolveCommand(run.runId, operation)}`];
  }
}

function askProvider(operationId: string, when = ''): string {
  return `Ask the provider by operationId ${operationId} whether it happened, as a worker does by itself${when}; do not repeat it before the provider has said that it did not.`;
}

function repeatSameId(operationId: string, when = ''): string {
  return `Its provider answers a repeated operationId with its first outcome, so a worker performs it again under ${operationId}${when}; do not repeat it under any other id.`;
}

function notExecuted(run: StoredRun, operation: Operation, named: string): string {
  const { attemptCount, kind, reason, soft } = operation;
  const why = reason === undefined ? '' : ` (${reason})`;
  const again = `a worker performs it again under the same id${whenPerformed(run, operation)}`;
  if (kind !== 'write') return `Attempt ${attemptCount} of ${named} brought no answer${why}: ${again}.`;
  return soft
    ? `Attempt ${attemptCount} of ${named} was not found at the provider${why} and may still arrive there; under the same id that is harmless, so ${again}, and nobody under another.`
    : `Attempt ${attemptCount} of ${named} was proved not to have happened${why}: ${again}.`;
}

function escalated(run: StoredRun, operation: Operation, named: string): string[] {
  const { record } = run;
  const { operationId, recovery, evidence } = operation;
  const reason = record?.escalation?.operationId === operationId ? record.escalation.reason : undefined;
  const commands = humanCommands(run.runId, operation);
  if (evidence !== undefined) {
    return [
      `${named} happened, but its answer does not fit the tool’s output: ${shorten(jsonText(evidence), 300)}. Do not repeat it.`,
      `Give it the output that it should have had: pawl resolve ${run.runId} ${operationId} --as succeeded --output JSON --by WHO --evidence TEXT`,
    ];
  }
  const why =
    reason === 'conflicting_attempts'
      ? 'an earlier attempt succeeded after a later one was written, so there may be two effects'
      : recovery === 'human'
        ? 'its provider can neither be asked nor given it twice'
        : `its provider could not say what happened for as long as the tool allows (${operation.reason ?? 'no answer'})`;
  return [
    `${named} may have happened; ${why}. Do not repeat it.`,
    `Ask the provider by operationId ${operationId} what became of it, then type: ${commands[0]}`,
    ...commands.slice(1).map((command) => `Or have a worker ask again: ${command}`),
  ];
}

/** What a person can type for an operation that needs one. `release` only helps where a provider can be asked. */
export function humanCommands(runId: string, operation: Operation): string[] {
  const release = `pawl release ${runId} --by WHO --reason TEXT`;
  const canAskAgain = operation.recovery !== 'human' && operation.evidence === undefined;
  return [resolveCommand(runId, operation), ...(canAskAgain ? [release] : [])];
}

function resolveCommand(runId: string, { operationId }: Operation): string {
  return `pawl resolve ${runId} ${operationId} --as succeeded --output JSON --by WHO --evidence TEXT (or --as failed, or --as not_executed, without --output)`;
}

/** What must not be repeated, and the one way in which it may. */
export function repeatRule(
  record: RunRecord,
  { operationId, tool, outcome, atMs }: RunView['doNotRepeat'][number],
): string {
  const what = `Do not repeat ${tool} (operation ${operationId})`;
  const operation = record.operations[operationId];
  if (outcome === 'succeeded' || operation?.evidence !== undefined) return `${what}: it happened (${timeText(atMs)}).`;
  const may = `it may have happened (attempt of ${timeText(atMs)})`;
  switch (operation?.recovery) {
    case 'repeat':
      return `${what} under another id: ${may}.`;
    case 'reconcile':
      return `${what} before its provider has said that it did not happen: ${may}.`;
    default:
      return `${what}: ${may}, and nobody but a person can find out.`;
  }
}

/**
 * The view's next action. A write that can be neither asked about nor repeated is never performed again by itself, so
 * once it is attempted the next safe action is a person's.
 */
export function nextOfOperation(run: StoredRun, view: RunView): RunView['next'] {
  const { next } = view;
  const operation = next.operationId === undefined ? undefined : run.record?.operations[next.operationId];
  if (next.kind !== 'execute' || operation?.kind !== 'write' || operation.recovery !== 'human') return next;
  if (operation.status !== 'attempted' && operation.status !== 'unknown') return next;
  const reason = `attempt ${operation.attemptCount} was written and has no receipt; the tool can be neither asked nor repeated`;
  return { ...next, kind: 'await_human', reason };
}

/** No attempt is begun while reducing is stopped. */
function whenPerformed(run: StoredRun, operation: Operation): string {
  return run.record && isStopped(run.record) ? ' once the run is released' : notBefore(run, operation);
}

function notBefore({ nowMs }: StoredRun, { notBeforeMs }: Operation): string {
  if (notBeforeMs <= nowMs) return '';
  return `, not before ${timeText(notBeforeMs)} (${distanceText(notBeforeMs, nowMs)})`;
}
