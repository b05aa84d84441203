/** Calls the command line in this process and keeps what it says. */
import type { Io, StopSignal } from '../../src/cli/io.ts';
import { runCommandLine } from '../../src/cli/run-command-line.ts';

export interface Said {
  code: number;
  out: string;
  err: string;
}

export interface CommandLineOptions {
  cwd?: string;
  env?: Record<string, string>;
  isTerminal?: boolean;
  columns?: number;
  stdin?: string;
}

export interface CommandLine {
  said: Promise<Said>;
  /** What it has said so far. */
  readonly out: string;
  readonly err: string;
  signal(signal: StopSignal): void;
  /** Codes it has asked to end the process with, at once. */
  readonly exits: number[];
}

export function startCommandLine(argv: readonly string[], options: CommandLineOptions = {}): CommandLine {
  const listeners = new Set<(signal: StopSignal) => void>();
  const exits: number[] = [];
  let out = '';
  let err = '';
  const io: Io = {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    readStdin: () => options.stdin ?? '',
    outIsTerminal: options.isTerminal ?? false,
    errIsTerminal: options.isTerminal ?? false,
    columns: options.columns ?? 100,
    env: options.env ?? {},
    cwd: options.cwd ?? '/dev/null/nowhere',
    pid: 1,
    onStopSignal(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    exitNow: (code) => void exits.push(code),
  };
  return {
    said: runCommandLine(argv, io).then((code) => ({ code, out, err })),
    get out() {
      return out;
    },
    get err() {
      return err;
    },
    signal: (signal) => listeners.forEach((listener) => listener(signal)),
    exits,
  };
}

export function pawl(argv: readonly string[], options: CommandLineOptions = {}): Promise<Said> {
  return startCommandLine(argv, options).said;
}

/** The document of a command under `--json`: one line, nothing else on stdout. */
export function documentOf({ out }: Said): unknown {
  if (!/^[^\n]+\n$/.test(out)) throw new Error(`stdout is not one line: ${JSON.stringify(out)}`);
  return JSON.parse(out);
}
