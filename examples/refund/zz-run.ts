import { runDemo } from './demo.ts';
const o = JSON.parse(process.argv[2] ?? '{}');
const { exitCode } = await runDemo(o, { stdout: process.stdout, stderr: process.stderr });
process.stderr.write(`exit ${exitCode}\n`);
process.exitCode = exitCode;
