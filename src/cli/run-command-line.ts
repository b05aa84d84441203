/** One command line: dispatch, help, exit code, and every error as text or JSON. Never rejects. */
import { createRequire } from 'node:module';
import { ERROR_CODES, isPawlError, messageOf, PawlError, type ErrorCode } from '../errors.ts';
import { COMMANDS, COMMANDS_TO_COME } from './commands.ts';
import { usage } from './flags.ts';
import type { Io } from './io.ts';
import { paintFor } from './paint.ts';
import { parseCommandLine, splitCommand } from './parse-command-line.ts';
import { renderCommandHelp, renderHelp } from './render-help.ts';
import { printable } from './render-table.ts';

/** `argv` without the node binary and the script. Resolves with the exit code. */
export async function runCommandLine(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (error) {
    return reportError(error, argv, io);
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const { name, rest } = splitCommand(argv);
  const width = Math.min(100, Math.max(60, io.columns));
  if (name === undefined) {
    if (rest.includes('--version')) {
      io.out(`${version()}\n`);
      return 0;
    }
    const isAsked = rest.includes('--help') || rest.includes('-h');
    if (!isAsked && rest.length > 0) throw usage(`A command is missing: pawl COMMAND ${rest.join(' ')}`);
    const help = renderHelp(COMMANDS, width, paintFor(io, isAsked ? 'out' : 'err'));
    if (isAsked) io.out(help);
    else io.err(help);
    return isAsked ? 0 : 2;
  }
  if (name === 'help') return dispatch([...rest, '--help'], io);
  const command = COMMANDS.find((known) => known.name === name);
  if (!command) throw unknownCommand(name);
  const { arguments: given, flags } = parseCommandLine(command, rest);
  if (flags.is('help')) {
    io.out(renderCommandHelp(command, width, paintFor(io)));
    return 0;
  }
  return command.run({ io, arguments: given, flags, isJson: flags.is('json'), isQuiet: flags.is('quiet') });
}

function unknownCommand(name: string): PawlError {
  const known = COMMANDS.map((command) => command.name);
  if (COMMANDS_TO_COME.includes(name)) return usage(`pawl ${name} is not available yet.`, { command: name });
  return usage(`There is no command '${name}'; there are ${known.join(', ')}.`, { command: name, known });
}

/** Prints what went wrong and what to do about it; returns the exit code. */
function reportError(thrown: unknown, argv: readonly string[], io: Io): number {
  const error = isPawlError(thrown) ? thrown : unexpected(thrown);
  const { code, message, details, exitCode } = error;
  const end = argv.indexOf('--');
  if (argv.slice(0, end < 0 ? argv.length : end).includes('--json')) {
    io.out(`${JSON.stringify({ error: { code, message, details } }, null, io.outIsTerminal ? 2 : 0)}\n`);
  } else {
    const paint = paintFor(io, 'err');
    io.err(`${paint('red', code)}  ${printable(message)}\n`);
    io.err(`${paint('dim', `fix: ${fixOf(code, argv)}`)}\n`);
  }
  if (io.env['PAWL_DEBUG'] !== undefined && thrown instanceof Error) io.err(`${thrown.stack ?? ''}\n`);
  return exitCode;
}

function fixOf(code: ErrorCode, argv: readonly string[]): string {
  const { name } = splitCommand(argv);
  const isKnown = COMMANDS.some((command) => command.name === name);
  return code === 'USAGE' && isKnown ? `See \`pawl ${name} --help\`.` : ERROR_CODES[code].fix;
}

function unexpected(thrown: unknown): PawlError {
  return new PawlError('INTERNAL', messageOf(thrown), { cause: thrown });
}

/** From package.json, which lies two folders above, in src as in dist. */
function version(): string {
  return (createRequire(import.meta.url)('../../package.json') as { version: string }).version;
}
