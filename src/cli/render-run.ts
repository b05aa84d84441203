/** One run in full, for people. */
import type { RunView } from '../runtime/view.ts';
import type { Paint } from './paint.ts';
import { printable } from './render-table.ts';
import { jsonText, stateText, STATUS_COLOUR, STATUS_TEXT, timeText } from './render-value.ts';

export function renderRun(view: RunView, paint: Paint): string {
  const rows: [string, string][] = [
    ['status', paint(STATUS_COLOUR[view.status], STATUS_TEXT[view.status])],
    ['agent', `${view.agent}@${view.agentVersion}`],
    ['goal', view.goal],
    ['state', stateText(view.state)],
    ['tags', view.tags.join(', ')],
    ['sequence', String(view.sequence)],
    ['next', `${view.next.kind.replaceAll('_', ' ')}: ${view.next.reason}`],
    ['allowed', view.next.allowedEvents.join(', ')],
    ['error', view.error ? `${view.error.code}: ${view.error.message}` : ''],
    ['cancel', view.cancel ? `by ${view.cancel.by} at ${timeText(view.cancel.atMs)}: ${view.cancel.reason}` : ''],
    ['confirmed', confirmedText(view)],
    ...view.openOperations.map(({ operationId, tool, status, attempts, since, reason }): [string, string] => [
      'operation',
      `${operationId}  ${tool}  ${status}, ${attempts} attempt(s), since ${timeText(since)}${reason === null ? '' : `: ${reason}`}`,
    ]),
    ...view.doNotRepeat.map(({ operationId, tool, outcome, atMs }): [string, string] => [
      'no repeat',
      `${operationId}  ${tool}  ${outcome} ${timeText(atMs)}`,
    ]),
    ...view.timers.map(({ id, kind, dueAtMs }): [string, string] => ['timer', `${id}  ${kind}  ${timeText(dueAtMs)}`]),
    ['inbox', inboxText(view)],
    ['lease', view.lease ? `${view.lease.workerId} until ${timeText(view.lease.untilMs)}` : ''],
    ['deadline', view.deadlineAtMs === null ? '' : timeText(view.deadlineAtMs)],
    ['tenant', view.tenant],
    ['subject', view.subject ?? ''],
    [
      'labels',
      Object.entries(view.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ['started', `${timeText(view.createdAtMs)}${view.createdBy === null ? '' : ` by ${view.createdBy}`}`],
    ['updated', timeText(view.updatedAtMs)],
    ['input', jsonText(view.input)],
    ['context', jsonText(view.context)],
    ['output', view.output === null ? '' : jsonText(view.output)],
  ];
  const lines = rows
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `${paint('dim', name.padEnd(9))}  ${name === 'status' ? text : printable(text)}`);
  return `${[paint('bold', view.runId), ...lines].join('\n')}\n`;
}

function confirmedText({ lastConfirmedEffect: last }: RunView): string {
  return last ? `${last.operationId}  ${last.tool}  ${last.outcome} ${timeText(last.atMs)}` : '';
}

function inboxText({ inbox: { waiting, deferred } }: RunView): string {
  const parts = [
    ...(waiting > 0 ? [`${waiting} not yet reduced`] : []),
    ...(deferred.length > 0 ? [`${deferred.length} deferred: ${deferred.map(({ type }) => type).join(', ')}`] : []),
  ];
  return parts.join('; ');
}
