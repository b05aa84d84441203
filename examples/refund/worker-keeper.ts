/** Keeps a worker process alive: starts it again whenever it dies, and kills it if that is what the demo is about. */
import type { ChildProcess } from 'node:child_process';
import { spawnProgram } from './start-server.ts';
import { workerMessage, type WorkerMessage, type WorkerSettings } from './worker-settings.ts';

export interface WorkerKeeperOptions {
  settings: WorkerSettings;
  /** Milliseconds from the worker's first claim to the kill; null: nobody kills it from here. */
  killEveryMs: number | null;
  /** One line each, for people. */
  say: (line: string) => void;
  heard: (message: WorkerMessage) => void;
}

export interface WorkerKeeper {
  /** Deaths by SIGKILL, whoever sent it. */
  readonly kills: number;
  /** Set when the worker ends by itself again and again: it cannot do its job. */
  readonly failure: string | null;
  /** Lets the worker end in order. */
  stop(): Promise<void>;
}

/** A worker that ends by itself so often in a row is broken. */
const MAX_FAILURES = 5;

export function keepWorker({ settings, killEveryMs, say, heard }: WorkerKeeperOptions): WorkerKeeper {
  const keeper = { kills: 0, failure: null as string | null, stop };
  let failures = 0;
  let stopping = false;
  let child = spawn();

  function spawn(): ChildProcess {
    const started = spawnProgram('worker', [JSON.stringify(settings)]);
    let timer: NodeJS.Timeout | undefined;
    say(`worker pid ${started.pid}`);
    started.stdout?.resume();
    started.on('message', (received) => {
      const message = workerMessage.parse(received);
      if (message.kind === 'claimed' && killEveryMs !== null && !stopping) {
        timer = setTimeout(() => stopping || started.kill('SIGKILL'), killEveryMs);
      }
      heard(message);
    });
    started.once('exit', (code, signal) => {
      clearTimeout(timer);
      if (signal === 'SIGKILL') {
        keeper.kills += 1;
        failures = 0;
      } else if (!stopping) {
        failures += 1;
        say(`worker ${started.pid} ended with ${code ?? signal}`);
        if (failures >= MAX_FAILURES) keeper.failure = `The worker ended ${failures} times in a row by itself.`;
      }
      if (!stopping && keeper.failure === null) child = spawn();
    });
    return started;
  }

  async function stop(): Promise<void> {
    stopping = true;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }

  return keeper;
}
