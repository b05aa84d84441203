/** What a run said to an event or command, and the exit code of that: refused is 4. */
import type { Verdict } from '../runtime/deliver.ts';
import { answer, notice } from './answer.ts';
import type { Invocation, Option } from './command.ts';
import type { Flags } from './flags.ts';
import type { Paint } from './paint.ts';
import { stateText } from './render-value.ts';

export const WAIT_OPTION: Option = {
  value: 'N',
  help: 'how long to wait for a worker to apply it; 0 returns at once; default 5000',
};

export function waitMsOf(flags: Flags): number {
  return flags.whole('wait-ms', 0, 3_600_000) ?? 5_000;
}

/** Prints it; returns the exit code. */
export function answerVerdict(invocation: Invocation, verdict: Verdict): number {
  answer(invocation, verdict, renderVerdict);
  if (verdict.verdict === 'accepted') {
    notice(invocation, 'It is stored and no worker has applied it yet; `pawl work` does.');
  }
  return verdict.verdict === 'refused' ? 4 : 0;
}

function renderVerdict({ verdict, reason, sequence, state, allowed }: Verdict, paint: Paint): string {
  const word = paint(verdict === 'refused' ? 'red' : verdict === 'applied' ? 'green' : 'yellow', verdict);
  const why = reason === undefined ? '' : ` (${reason})`;
  const takes = allowed.length === 0 ? '' : `; it takes ${allowed.join(', ')}`;
  return `${word}${why} at sequence ${sequence}, state ${stateText(state)}${takes}\n`;
}
