/** `pawl work`: a standing worker; the first signal drains it, the second ends it at once. */
import { answer } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import type { StopSignal } from '../io.ts';
import { withRuntime } from '../open-runtime.ts';
import { stderrLogger } from '../stderr-logger.ts';

const SIGNAL_NUMBERS: Record<StopSignal, number> = { SIGINT: 2, SIGTERM: 15 };

export const workCommand: Command = {
  name: 'work',
  group: 'Operate',
  summary: 'run a worker until SIGTERM or Ctrl-C',
  arguments: [],
  options: {
    concurrency: { value: 'N', help: 'runs worked at the same time, 1 to 10000; default 64' },
    'grace-ms': { value: 'N', help: 'how long calls under way may take to end after the signal; default 10000' },
  },
  about: [
    'Works the due runs of the config’s agents, any number of such processes beside each other on one store. Logs go to stderr.',
    'The first SIGTERM or SIGINT drains: no new run is taken, calls under way end, every lease is given back. The second ends the process at once; so does SIGKILL. Either is safe: whoever claims the runs next finds out what became of each call.',
  ],
  examples: ['pawl work', 'pawl work --concurrency 8 --store sqlite:./.pawl/pawl.db'],
  run: work,
};

function work(invocation: Invocation): Promise<number> {
  const { flags, io, isQuiet } = invocation;
  const concurrency = flags.whole('concurrency', 1, 10_000) ?? 64;
  const graceMs = flags.whole('grace-ms', 0, 86_400_000) ?? 10_000;
  const logger = stderrLogger(io, isQuiet);
  return withRuntime(invocation, { agents: 'required', create: true, logger }, async ({ pawl, agents, storeName }) => {
    let stop: (signal: StopSignal) => void = () => {};
    const stopped = new Promise<StopSignal>((resolve) => {
      stop = resolve;
    });
    let isDraining = false;
    const forget = io.onStopSignal((signal) => {
      if (isDraining) return io.exitNow(128 + SIGNAL_NUMBERS[signal]);
      isDraining = true;
      stop(signal);
    });
    try {
      // Changed machines and unreachable stores are told at once, not at the first sweep.
      await pawl.list({ limit: 1 });
      const worker = pawl.work({ concurrency });
      logger.info('working', {
        pid: io.pid,
        worker: worker.workerId,
        agents: agents.map(({ name, version }) => `${name}@${version}`).join(','),
        store: storeName,
        concurrency,
      });
      const signal = await stopped;
      logger.info(`${signal}: draining; a second signal ends it at once`);
      await worker.stop({ graceMs });
      logger.info('drained; every lease is given back');
      answer(invocation, { workerId: worker.workerId, pid: io.pid, signal }, () => '');
      return 0;
    } finally {
      forget();
    }
  });
}
