/** `pawl ls`: the runs, newest first. */
import type { ListFilter } from '../../persistence/store.ts';
import type { RunStatus } from '../../records.ts';
import { viewOf } from '../../runtime/view.ts';
import { answer, widthOf } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import { openForLooking } from '../locate-store.ts';
import { renderRuns } from '../render-runs.ts';

const STATUSES = ['running', 'waiting', 'needs_human', 'done', 'failed', 'cancelled'] as const satisfies RunStatus[];

export const lsCommand: Command = {
  name: 'ls',
  group: 'Look',
  summary: 'list runs, newest first',
  arguments: [],
  options: {
    status: { value: STATUSES.join('|'), help: 'only runs of this status' },
    agent: { value: 'NAME', help: 'only runs of this agent' },
    state: { value: 'PATH', help: 'only runs in this state; any dotted path of the state value' },
    tenant: { value: 'ID', help: 'only runs of this tenant' },
    label: { value: 'K=V', multiple: true, help: 'only runs with this label' },
    blocked: { help: 'only runs that need a human, or wait for an operation of another run' },
    limit: { value: 'N', help: 'at most so many, 1 to 1000; default 100' },
    cursor: { value: 'CURSOR', help: 'go on where another list ended' },
  },
  about: ['Needs neither a config nor the agents’ code: a store is enough.'],
  examples: ['pawl ls --status needs_human', 'pawl ls --agent refund --state refunding --store sqlite:./.pawl/pawl.db'],
  run: ls,
};

async function ls(invocation: Invocation): Promise<number> {
  const filter = filterOf(invocation);
  const { store } = await openForLooking(invocation);
  try {
    const { runs, cursor } = await store.list(filter);
    const nowMs = runs[0]?.nowMs ?? 0;
    answer(invocation, { runs: runs.map(viewOf), cursor }, (document, paint) =>
      renderRuns(document, { nowMs, width: widthOf(invocation), paint }),
    );
    return 0;
  } finally {
    await store.close();
  }
}

function filterOf({ flags }: Invocation): ListFilter {
  const status = flags.oneOf('status', STATUSES);
  const limit = flags.whole('limit', 1, 1_000);
  const labels = flags.pairs('label');
  const texts = Object.fromEntries(
    (['agent', 'state', 'tenant', 'cursor'] as const).flatMap((name) => {
      const value = flags.text(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  return {
    ...texts,
    ...(status === undefined ? {} : { status }),
    ...(limit === undefined ? {} : { limit }),
    ...(flags.is('blocked') ? { blocked: true } : {}),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}
