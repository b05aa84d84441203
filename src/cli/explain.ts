/** What is true of a run and what may be done next, in sentences, from what is stored alone. */
import type { StoredRun } from '../persistence/store.ts';
import type { Json, RunRecord, RunStatus } from '../records.ts';
import { viewOf, type RunView } from '../runtime/view.ts';
import { adviceFor, compare, nextOfOperation, repeatRule } from './explain-operation.ts';
import { distanceText, jsonText, STATUS_TEXT, stateText, timeText } from './render-value.ts';
import { shorten } from './render-table.ts';

/** The document of `pawl explain --json`. */
export interface Explanation {
  runId: string;
  status: RunStatus;
  state: Json;
  sentences: string[];
  lastConfirmedEffect: RunView['lastConfirmedEffect'];
  next: RunView['next'];
  doNotRepeat: RunView['doNotRepeat'];
  waitingFor: string[];
}

/** The five questions, in the order in which somebody asks them. */
export interface ExplainedRun {
  explanation: Explanation;
  sections: { title: 'State' | 'Confirmed' | 'Next' | 'Do not repeat' | 'Waits for'; sentences: string[] }[];
}

/** Sentences about effects name this many, newest last; the document has them all. */
const SHOWN_EFFECTS = 10;

export function explain(run: StoredRun): ExplainedRun {
  const view = viewOf(run);
  const sections: ExplainedRun['sections'] = [
    { title: 'State', sentences: stateSentences(run, view) },
    { title: 'Confirmed', sentences: confirmedSentences(run, view) },
    { title: 'Next', sentences: nextSentences(run, view) },
    { title: 'Do not repeat', sentences: repeatSentences(run, view) },
    { title: 'Waits for', sentences: waitSentences(run, view) },
  ];
  const { runId, status, state, lastConfirmedEffect, doNotRepeat, waitingFor } = view;
  return {
    sections,
    explanation: {
      runId,
      status,
      state,
      sentences: sections.flatMap(({ sentences }) => sentences),
      lastConfirmedEffect,
      next: nextOfOperation(run, view),
      doNotRepeat,
      waitingFor,
    },
  };
}

export function isFinal(status: RunStatus): boolean {
  return status === 'done' || status === 'failed' || status === 'cancelled';
}

function stateSentences({ record, facts, nowMs }: StoredRun, view: RunView): string[] {
  const who = `Run ${view.runId} of agent ${view.agent} version ${view.agentVersion}`;
  if (record === null) return [`${who} has a stored record that cannot be read, at sequence ${view.sequence}.`];
  const state = `state ${stateText(view.state)} at sequence ${view.sequence}`;
  const sentences = [
    isFinal(view.status)
      ? `${who} has ended: it is ${STATUS_TEXT[view.status]}, in ${state}.`
      : view.status === 'needs_human'
        ? `${who} is in ${state} and needs a human.`
        : `${who} is in ${state}; it is ${STATUS_TEXT[view.status]}.`,
  ];
  if (view.goal !== '') sentences.push(`Its goal: ${view.goal}.`);
  if (isFinal(view.status) && view.output !== null)
    sentences.push(`Its output is ${shorten(jsonText(view.output), 300)}.`);
  if (view.status === 'failed' && view.error)
    sentences.push(`It failed with ${view.error.code}: ${view.error.message}`);
  if (view.cancel && !isFinal(view.status)) {
    const { by, reason, atMs } = view.cancel;
    sentences.push(
      `${by} cancelled it at ${timeText(atMs)} (${reason}): no attempt is begun any more; what was attempted is settled, then it ends.`,
    );
  }
  if (record.deadlineAtMs !== null && !isFinal(view.status)) {
    sentences.push(
      `Its deadline is ${timeText(record.deadlineAtMs)} (${distanceText(record.deadlineAtMs, nowMs)}); no attempt starts after it.`,
    );
  }
  if (facts.closed && !isFinal(view.status)) sentences.push('It is closed.');
  return sentences;
}

function confirmedSentences({ record }: StoredRun, view: RunView): string[] {
  if (record === null) {
    return [`What it did cannot be read from its record; its ledger can still be read: pawl history ${view.runId}`];
  }
  const sentences: string[] = [];
  const last = view.lastConfirmedEffect;
  if (last) {
    sentences.push(
      `The last confirmed side effect is ${last.tool}: operation ${last.operationId} ${last.outcome} at ${timeText(last.atMs)}.`,
    );
  } else sentences.push('No side effect of this run is confirmed.');
  const { escalation } = record;
  if (escalation && UNCLAIMED.has(escalation.reason)) {
    const named = escalation.operationId === undefined ? '' : `Operation ${escalation.operationId}: `;
    sentences.push(`${named}${escalation.message ?? escalation.reason}`);
  }
  return sentences;
}

/** Escalations that report an effect nobody waited for; the run goes on. */
const UNCLAIMED: ReadonlySet<string> = new Set(['late_success', 'abandoned_success']);

function nextSentences(run: StoredRun, view: RunView): string[] {
  const { record } = run;
  const { runId } = view;
  if (record === null) {
    return [
      `No worker touches it and no tool is called: ${run.unreadable ?? 'its bytes cannot be read'}.`,
      `Restore the bytes of its record from a backup, then wake it: pawl release ${runId} --by WHO --reason TEXT`,
    ];
  }
  if (isFinal(view.status)) return ['Nothing is left to be done for it.'];
  const operations = Object.values(record.operations).toSorted(compare(view.next.operationId));
  return [
    ...stopSentences(record),
    ...operations.flatMap((operation) => adviceFor(run, operation)),
    ...(operations.length === 0 ? withoutOperations(run, record, view) : []),
  ];
}

function stopSentences({ runId, escalation }: RunRecord): string[] {
  if (escalation === null) return [];
  const release = `pawl release ${runId} --by WHO --reason TEXT`;
  const what = escalation.message === undefined ? '' : `: ${escalation.message.replace(/\.$/, '')}`;
  switch (escalation.reason) {
    case 'step_threw':
      return [
        `A step of its machine threw${what}. Nothing of that step was kept but the fact that led to it.`,
        `Correct the guard, assign or mapper, deploy it, then let the same fact be reduced again: ${release}`,
      ];
    case 'runaway':
      return [
        `It was stopped because it ran away${what}.`,
        `Find out why from its ledger (pawl history ${runId}), correct the agent, then: ${release}`,
      ];
    case 'migration_unmapped':
      return [
        `Its state has no place in the new version of its agent${what}. Deploy a migration that maps it, then: ${release}`,
      ];
    default:
      return [];
  }
}

function withoutOperations({ waiting }: StoredRun, record: RunRecord, { next, runId }: RunView): string[] {
  if (record.escalation !== null && next.kind === 'await_human') return [];
  if (record.pending.length > 0)
    return ['A completion is stored and not yet reduced: a worker reduces it; no tool is called.'];
  if (waiting > 0) {
    return [
      `${waiting} stored item${waiting === 1 ? '' : 's'} of its inbox ${waiting === 1 ? 'is' : 'are'} not yet reduced: a worker reduces them in order.`,
    ];
  }
  switch (next.kind) {
    case 'await_event':
      return next.allowedEvents.length === 0
        ? [`Nothing but waiting: ${next.reason}.`]
        : [`No worker has anything to do; an event moves it: pawl send ${runId} ${next.allowedEvents[0]} JSON`];
    case 'await_timer':
      return ['Nothing but waiting: a worker goes on when its timer is due.'];
    case 'none':
      return [`Nothing can move it: ${next.reason}. To end it: pawl cancel ${runId} --by WHO --reason TEXT`];
    default:
      return [`Next: ${next.kind.replace('_', ' ')}; ${next.reason}.`];
  }
}

function repeatSentences({ record }: StoredRun, view: RunView): string[] {
  if (record === null) return ['Take every write in its ledger as one that may have happened; repeat none of them.'];
  const shown = view.doNotRepeat.slice(-SHOWN_EFFECTS);
  const hidden = view.doNotRepeat.length - shown.length;
  const sentences = shown.map((entry) => repeatRule(record, entry));
  if (hidden > 0)
    sentences.unshift(
      `${hidden} earlier write${hidden === 1 ? '' : 's'} happened and must not be repeated either; \`pawl show\` lists them.`,
    );
  return sentences.length === 0 ? ['No write of this run has happened or may have happened.'] : sentences;
}

function waitSentences(run: StoredRun, view: RunView): string[] {
  const { record, facts, nowMs, waiting } = run;
  if (isFinal(view.status)) return ['It waits for nothing.'];
  const sentences: string[] = [];
  if (view.status === 'needs_human') sentences.push(`It waits for a person (${reasonOf(run)}).`);
  if (facts.lease && facts.lease.untilMs > nowMs) {
    sentences.push(
      `Worker ${facts.lease.workerId} holds it until ${timeText(facts.lease.untilMs)} (${distanceText(facts.lease.untilMs, nowMs)}); if that worker is gone, any other takes it over then.`,
    );
  } else if (record !== null && hasWork(record, waiting)) {
    const gone = facts.lease
      ? `; the lease of ${facts.lease.workerId} ran out at ${timeText(facts.lease.untilMs)}`
      : '';
    sentences.push(`No worker holds it${gone}: it goes on as soon as one runs (pawl work).`);
  }
  for (const { id, kind, dueAtMs } of view.timers) {
    sentences.push(`Timer ${id} (${kind}) is due at ${timeText(dueAtMs)}, ${distanceText(dueAtMs, nowMs)}.`);
  }
  for (const { operationId } of record?.blocked ?? []) {
    sentences.push(`One of its invocations waits for operation ${operationId}, which is open elsewhere.`);
  }
  if (view.next.allowedEvents.length > 0) {
    sentences.push(`It may be sent ${view.next.allowedEvents.join(', ')}.`);
  }
  if (view.inbox.deferred.length > 0) {
    const types = [...new Set(view.inbox.deferred.map(({ type }) => type))].join(', ');
    sentences.push(`${view.inbox.deferred.length} deferred event(s) wait for a state that takes them: ${types}.`);
  }
  return sentences.length === 0 ? ['It waits for nothing that is stored.'] : sentences;
}

function reasonOf({ record, unreadable }: StoredRun): string {
  if (record === null) return `record_unreadable: ${unreadable ?? 'its bytes cannot be read'}`;
  return record.escalation?.reason ?? 'an operation whose outcome is not known';
}

/** Whether a worker would have something to do, now or when a back-off ends. */
function hasWork(record: RunRecord, waiting: number): boolean {
  const open = Object.values(record.operations).some(({ status }) => status !== 'escalated');
  return waiting > 0 || open || record.pending.length > 0 || record.outbox.length > 0;
}
