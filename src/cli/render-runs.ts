/** The table of `pawl ls`. */
import type { RunView } from '../runtime/view.ts';
import type { Paint } from './paint.ts';
import { renderTable } from './render-table.ts';
import { distanceText, stateText, STATUS_COLOUR, STATUS_TEXT } from './render-value.ts';

export function renderRuns(
  { runs, cursor }: { runs: readonly RunView[]; cursor: string | null },
  { nowMs, width, paint }: { nowMs: number; width: number; paint: Paint },
): string {
  if (runs.length === 0) return 'No runs.\n';
  const table = renderTable(
    runs,
    [
      { title: 'RUN', text: ({ runId }) => runId, minWidth: 16 },
      { title: 'AGENT', text: ({ agent, agentVersion }) => `${agent}@${agentVersion}`, minWidth: 8 },
      { title: 'STATUS', text: ({ status }) => STATUS_TEXT[status], colour: ({ status }) => STATUS_COLOUR[status] },
      { title: 'STATE', text: ({ state }) => stateText(state), minWidth: 10 },
      { title: 'SEQ', text: ({ sequence }) => String(sequence), align: 'right' },
      { title: 'UPDATED', text: ({ updatedAtMs }) => distanceText(updatedAtMs, nowMs) },
      { title: 'NEXT', text: nextText, minWidth: 12, colour: () => 'dim' },
    ],
    width,
    paint,
  );
  return cursor === null ? table : `${table}More: add --cursor ${cursor}\n`;
}

function nextText({ next }: RunView): string {
  if (next.kind === 'none') return '';
  const what = next.kind.replaceAll('_', ' ');
  if (next.tool !== undefined && next.tool !== '') return `${what} ${next.tool}`;
  return next.kind === 'await_event' && next.allowedEvents.length > 0
    ? `${what} ${next.allowedEvents.join(', ')}`
    : what;
}
