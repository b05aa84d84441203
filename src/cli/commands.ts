/** The commands that there are, in the order in which `pawl --help` lists them, and those that are to come. */
import type { Command } from './command.ts';
import { demoCommand } from './commands/demo.ts';
import { exportCommand } from './commands/export.ts';
import { historyCommand } from './commands/history.ts';
import { explainCommand, showCommand } from './commands/look.ts';
import { lsCommand } from './commands/ls.ts';
import { sendCommand } from './commands/send.ts';
import { cancelCommand, releaseCommand, resolveCommand } from './commands/settle.ts';
import { startCommand } from './commands/start.ts';
import { verifyCommand } from './commands/verify.ts';
import { workCommand } from './commands/work.ts';

export const COMMANDS: readonly Command[] = [
  demoCommand,
  startCommand,
  sendCommand,
  cancelCommand,
  resolveCommand,
  releaseCommand,
  lsCommand,
  showCommand,
  explainCommand,
  historyCommand,
  workCommand,
  verifyCommand,
  exportCommand,
];

/** Named by the contract and not built yet. */
export const COMMANDS_TO_COME: readonly string[] = [
  'approvals',
  'approve',
  'reject',
  'pause',
  'unpause',
  'fork',
  'migrate',
  'erase',
  'doctor',
  'graph',
  'gate',
  'test',
  'simulate',
  'eval',
  'serve',
  'mcp',
  'completion',
  'init',
];
