/** `pawl show` and `pawl explain`: one run, from its store alone. */
import { isPawlError, PawlError } from '../../errors.ts';
import type { StoredRun } from '../../persistence/store.ts';
import { loadRun } from '../../runtime/deliver.ts';
import { viewOf } from '../../runtime/view.ts';
import { answer, widthOf } from '../answer.ts';
import type { Argument, Command, Invocation } from '../command.ts';
import { explain } from '../explain.ts';
import { openForLooking } from '../locate-store.ts';
import { renderExplanation } from '../render-explanation.ts';
import { renderRun } from '../render-run.ts';

const RUN: Argument = { name: 'RUN', help: 'the run’s id' };
const FROM_STORE = 'Needs neither a config nor the agent’s code: a store is enough.';

export const showCommand: Command = {
  name: 'show',
  group: 'Look',
  summary: 'everything that is stored of a run',
  arguments: [RUN],
  options: {},
  about: [FROM_STORE],
  examples: ['pawl show refund-1042', 'pawl show refund-1042 --json | jq .openOperations'],
  async run(invocation) {
    const view = viewOf(await readRun(invocation));
    answer(invocation, view, renderRun);
    return 0;
  },
};

export const explainCommand: Command = {
  name: 'explain',
  group: 'Look',
  summary: 'where a run is, what is safe to do next and what must not be repeated',
  arguments: [RUN],
  options: {},
  about: [
    'Answers in sentences: in which state the run is, the last confirmed side effect, the next safe action, what must not be repeated, and why it waits. For a run that needs a human it names the command to type.',
    `Exits 6 when the run needs a human. ${FROM_STORE}`,
  ],
  examples: ['pawl explain refund-1042'],
  async run(invocation) {
    const { sections, explanation } = explain(await readForExplanation(invocation));
    answer(invocation, explanation, (_, paint) => renderExplanation(sections, widthOf(invocation), paint));
    return explanation.status === 'needs_human' ? 6 : 0;
  },
};

/** @throws RUN_NOT_FOUND, INVALID_ID, STORE_UNREACHABLE */
async function readRun(invocation: Invocation): Promise<StoredRun> {
  const [runId = ''] = invocation.arguments;
  const { store } = await openForLooking(invocation);
  try {
    return await loadRun(store, runId);
  } finally {
    await store.close();
  }
}

/** A run that is not there says something as well: nothing of it was stored, so nothing happened (B0). */
async function readForExplanation(invocation: Invocation): Promise<StoredRun> {
  try {
    return await readRun(invocation);
  } catch (error) {
    if (!isPawlError(error, 'RUN_NOT_FOUND')) throw error;
    const [runId = ''] = invocation.arguments;
    throw new PawlError(
      'RUN_NOT_FOUND',
      `There is no run ${runId} in this store: nothing of it was stored, so it has done nothing in the world. Starting it, again or for the first time, with this id is safe.`,
      { details: { runId }, cause: error },
    );
  }
}
