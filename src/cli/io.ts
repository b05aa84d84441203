/** Everything the command line touches of its process, so that tests can call it in theirs. */
import { readFileSync } from 'node:fs';

export type StopSignal = 'SIGTERM' | 'SIGINT';

export interface Io {
  /** Results only. */
  out(text: string): void;
  /** Logs, progress, notices and errors. */
  err(text: string): void;
  /** All of standard input; used by `@-`. */
  readStdin(): string;
  readonly outIsTerminal: boolean;
  readonly errIsTerminal: boolean;
  /** Width of the terminal; 100 when there is none. */
  readonly columns: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Relative paths begin here. */
  readonly cwd: string;
  readonly pid: number;
  /** Calls `listener` at each of these signals instead of ending the process, until the returned function is called. */
  onStopSignal(listener: (signal: StopSignal) => void): () => void;
  /** Ends the process at once. */
  exitNow(code: number): void;
}

/** The process itself. A reader that goes away (`pawl ls | head`) ends it quietly. */
export function processIo(): Io {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    readStdin: () => readFileSync(0, 'utf8'),
    outIsTerminal: process.stdout.isTTY,
    errIsTerminal: process.stderr.isTTY,
    columns: process.stdout.columns ?? 100,
    env: process.env,
    cwd: process.cwd(),
    pid: process.pid,
    onStopSignal(listener) {
      process.on('SIGTERM', listener);
      process.on('SIGINT', listener);
      return () => {
        process.off('SIGTERM', listener);
        process.off('SIGINT', listener);
      };
    },
    exitNow: (code) => process.exit(code),
  };
}
