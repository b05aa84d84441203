#!/usr/bin/env node
/** The `pawl` executable. */
import { processIo } from './io.ts';
import { runCommandLine } from './run-command-line.ts';

const code = await runCommandLine(process.argv.slice(2), processIo());
// A config may leave handles open; the command is done all the same once its output is written.
process.stdout.write('', () => process.exit(code));
