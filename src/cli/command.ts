/** What a command of `pawl` is: its arguments and flags, what it says about itself, and what it does. */
import type { Flags } from './flags.ts';
import type { Io } from './io.ts';

export interface Argument {
  name: string;
  help: string;
  optional?: true;
  /** One or more. */
  many?: true;
}

export interface Option {
  /** What stands for the value in the help; without one the option is a switch. */
  value?: string;
  help: string;
  /** May be given more than once. */
  multiple?: true;
  /** Without it the command is a usage error. */
  required?: true;
}

export type Options = Readonly<Record<string, Option>>;

/** The command line after the command's name. */
export interface Invocation {
  io: Io;
  arguments: readonly string[];
  flags: Flags;
  isJson: boolean;
  isQuiet: boolean;
}

export interface Command {
  name: string;
  group: string;
  /** One line for `pawl --help`. */
  summary: string;
  arguments: readonly Argument[];
  options: Options;
  /** Paragraphs for `pawl COMMAND --help`. */
  about: readonly string[];
  examples: readonly string[];
  /** Resolves with the exit code. */
  run(invocation: Invocation): Promise<number>;
}

export const GLOBAL_OPTIONS: Options = {
  config: { value: 'FILE', help: 'configuration; default pawl.config.ts, .js or .mjs in this folder' },
  store: { value: 'URL', help: 'sqlite:PATH or memory:; default the config’s, else sqlite:./.pawl/pawl.db' },
  json: { help: 'one JSON document on stdout, errors too; JSON lines for streams' },
  quiet: { help: 'no notices and no progress' },
  help: { help: 'this text' },
};

export function usageOf(command: Command): string {
  const positional = command.arguments.map(({ name, optional, many }) => {
    const shown = many ? `${name}…` : name;
    return optional ? `[${shown}]` : shown;
  });
  const required = Object.entries(command.options).flatMap(([name, { value, required: must }]) =>
    must ? [`--${name} ${value ?? ''}`.trim()] : [],
  );
  const hasOthers = Object.values(command.options).some(({ required: must }) => !must);
  return ['pawl', command.name, ...positional, ...required, ...(hasOthers ? ['[options]'] : [])].join(' ');
}
