/** From argv to a command with its arguments and flags; everything that does not fit is USAGE. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { GLOBAL_OPTIONS, usageOf, type Command, type Options } from './command.ts';
import { Flags, usage } from './flags.ts';

export interface CommandLine {
  /** The first word that is no flag. */
  name: string | undefined;
  /** argv without that word. */
  rest: string[];
}

/** Finds the command; global flags may stand before it. */
export function splitCommand(argv: readonly string[]): CommandLine {
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? '';
    if (!word.startsWith('-')) return { name: word, rest: [...argv.slice(0, at), ...argv.slice(at + 1)] };
    const option = GLOBAL_OPTIONS[word.slice(2)];
    if (option?.value !== undefined) at++;
  }
  return { name: undefined, rest: [...argv] };
}

export interface ParsedCommandLine {
  arguments: string[];
  flags: Flags;
}

/** @throws USAGE */
export function parseCommandLine(command: Command, rest: readonly string[]): ParsedCommandLine {
  const options: Options = { ...command.options, ...GLOBAL_OPTIONS };
  const { values, positionals } = parse(command, options, rest);
  const flags = new Flags(values);
  if (!flags.is('help')) checkArguments(command, positionals, flags);
  return { arguments: positionals, flags };
}

function parse(command: Command, options: Options, rest: readonly string[]) {
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { value, multiple }]) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: multiple ?? false,
        ...(name === 'help' ? { short: 'h' } : {}),
      },
    ]),
  ) satisfies ParseArgsConfig['options'];
  try {
    return parseArgs({ args: [...rest], options: config, allowPositionals: true, strict: true });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const named = /'(-[^' ]*)/.exec(message)?.[1] ?? '';
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const known = Object.keys(options).map((name) => `--${name}`);
      throw usage(`pawl ${command.name} does not know ${named}; it takes ${known.join(' ')}.`, { flag: named, known });
    }
    throw usage(`pawl ${command.name}: ${firstSentence(message)}.`, { flag: named });
  }
}

function checkArguments(command: Command, given: readonly string[], flags: Flags): void {
  const needed = command.arguments.filter(({ optional }) => !optional);
  const missing = needed[given.length];
  if (missing) throw usage(`${missing.name} is missing: ${usageOf(command)}`, { missing: missing.name });
  const takesMany = command.arguments.some(({ many }) => many);
  if (!takesMany && given.length > command.arguments.length) {
    const extra = given[command.arguments.length] ?? '';
    throw usage(`'${extra}' is one word too many: ${usageOf(command)}`, { given: extra });
  }
  for (const [name, { required, value }] of Object.entries(command.options)) {
    if (required && (flags.text(name) ?? '') === '') {
      throw usage(`--${name} ${value ?? ''} is missing: ${usageOf(command)}`, { missing: `--${name}` });
    }
  }
}

function firstSentence(message: string): string {
  return message.split(/\.(?: |$)|\n/)[0] ?? message;
}
