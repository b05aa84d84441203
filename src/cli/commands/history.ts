/** `pawl history`: the ledger of a run, once or as it grows. */
import { createRuntime } from '../../runtime/create-runtime.ts';
import { loadRun } from '../../runtime/deliver.ts';
import type { LedgerEntry } from '../../records.ts';
import { widthOf } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import { openForLooking } from '../locate-store.ts';
import { paintFor } from '../paint.ts';
import { renderEntry } from '../render-entry.ts';

export const historyCommand: Command = {
  name: 'history',
  group: 'Look',
  summary: 'the ledger of a run; with --follow, as it grows',
  arguments: [{ name: 'RUN', help: 'the run’s id' }],
  options: {
    from: { value: 'N', help: 'begin at this sequence' },
    follow: { help: 'go on until the run is closed or Ctrl-C' },
  },
  about: [
    'One line for each entry; under --json one LedgerEntry a line. Needs neither a config nor the agent’s code: a store is enough.',
  ],
  examples: ['pawl history refund-1042', 'pawl history refund-1042 --follow --json | jq .kind'],
  run: history,
};

async function history(invocation: Invocation): Promise<number> {
  const { flags, io, isJson } = invocation;
  const fromSequence = flags.whole('from', 0, Number.MAX_SAFE_INTEGER) ?? 0;
  const [runId = ''] = invocation.arguments;
  const paint = paintFor(io);
  const width = io.outIsTerminal ? widthOf(invocation) : Infinity;
  const print = (entry: LedgerEntry): void => {
    io.out(isJson ? `${JSON.stringify(entry)}\n` : renderEntry(entry, width, paint));
  };
  const { store } = await openForLooking(invocation);
  // No agents: watching reads, and a run of any agent can be read.
  const pawl = createRuntime({ agents: [], store });
  const stop = new AbortController();
  const forget = flags.is('follow') ? io.onStopSignal(() => stop.abort()) : null;
  try {
    await loadRun(store, runId);
    const entries = flags.is('follow')
      ? pawl.watch(runId, { fromSequence, signal: stop.signal })
      : store.read(runId, { fromSequence });
    for await (const entry of entries) print(entry);
    return 0;
  } finally {
    forget?.();
    await pawl.close();
  }
}
