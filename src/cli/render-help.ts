/** `pawl --help` and `pawl COMMAND --help`. */
import { GLOBAL_OPTIONS, usageOf, type Command, type Options } from './command.ts';
import type { Paint } from './paint.ts';
import { wrap } from './render-table.ts';

const EXIT_CODES =
  '0 done · 1 the answer is no · 2 usage · 3 not found · 4 refused · 5 store or provider unreachable · 6 needs a human';

export function renderHelp(commands: readonly Command[], width: number, paint: Paint): string {
  const lines = [
    'pawl: runs LLM agents that are XState machines, so that no step is lost or done twice.',
    '',
    `${paint('bold', 'Usage')}  pawl COMMAND [arguments] [options]`,
  ];
  const longest = Math.max(...commands.map(({ name }) => name.length));
  for (const group of new Set(commands.map((command) => command.group))) {
    lines.push('', paint('bold', group));
    for (const { name, summary } of commands.filter((command) => command.group === group)) {
      lines.push(entry(paint('cyan', name.padEnd(longest)), longest, summary, width));
    }
  }
  lines.push('', paint('bold', 'Options of every command'), ...optionLines(GLOBAL_OPTIONS, width, paint));
  lines.push('', `${paint('bold', 'Exit codes')}  ${wrap(EXIT_CODES, width - 12, ' '.repeat(12))}`);
  lines.push('', '`pawl COMMAND --help` says more, with examples.');
  return `${lines.join('\n')}\n`;
}

export function renderCommandHelp(command: Command, width: number, paint: Paint): string {
  const lines = [`${paint('bold', 'Usage')}  ${wrap(usageOf(command), width - 7, ' '.repeat(7))}`];
  for (const paragraph of command.about) lines.push('', wrap(paragraph, width));
  if (command.arguments.length > 0) {
    const longest = Math.max(...command.arguments.map(({ name }) => name.length));
    lines.push('', paint('bold', 'Arguments'));
    for (const { name, help } of command.arguments) {
      lines.push(entry(paint('cyan', name.padEnd(longest)), longest, help, width));
    }
  }
  if (Object.keys(command.options).length > 0) {
    lines.push('', paint('bold', 'Options'), ...optionLines(command.options, width, paint));
  }
  lines.push('', paint('bold', 'Options of every command'), ...optionLines(GLOBAL_OPTIONS, width, paint));
  if (command.examples.length > 0) {
    lines.push('', paint('bold', 'Examples'), ...command.examples.map((example) => `  ${example}`));
  }
  return `${lines.join('\n')}\n`;
}

function optionLines(options: Options, width: number, paint: Paint): string[] {
  const shown = Object.entries(options).map(([name, { value, help, multiple, required }]) => {
    const notes = [required ? 'needed' : '', multiple ? 'may be repeated' : ''].filter((note) => note !== '');
    const flag = value === undefined ? `--${name}` : `--${name} ${value}`;
    return { flag, help: notes.length === 0 ? help : `${help} (${notes.join(', ')})` };
  });
  const longest = Math.max(...shown.map(({ flag }) => flag.length));
  return shown.map(({ flag, help }) => entry(paint('cyan', flag.padEnd(longest)), longest, help, width));
}

function entry(painted: string, length: number, text: string, width: number): string {
  const indent = length + 4;
  return `  ${painted}  ${wrap(text, Math.max(30, width - indent), ' '.repeat(indent))}`;
}
