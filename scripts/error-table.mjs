// Writes the table of error codes into docs/errors.md; `--check` fails when it differs from the code.
import { readFileSync, writeFileSync } from 'node:fs';
import { ERROR_CODES } from '../dist/index.js';

const FILE = 'docs/errors.md';
const HEAD = `# Error codes

Every error is a \`PawlError\` with \`code\`, \`message\`, \`details\`, \`retryable\`, \`httpStatus\` and \`exitCode\`; recognise it with
\`isPawlError(error, 'CODE')\`. Codes are stable between majors, messages are free to improve. *Retry* says that the same call may
succeed later unchanged. Written by \`node scripts/error-table.mjs\`.

| code | what to do | HTTP | exit | retry |
| --- | --- | --- | --- | --- |
`;
const rows = Object.entries(ERROR_CODES)
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([code, { fix, httpStatus, exitCode, retryable }]) =>
      `| \`${code}\` | ${fix.replaceAll('|', '\\|')} | ${httpStatus} | ${exitCode} | ${retryable ? 'yes' : ''} |`,
  );
const text = `${HEAD}${rows.join('\n')}\n`;
if (!process.argv.includes('--check')) writeFileSync(FILE, text);
else if (readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write(`${FILE} differs from ERROR_CODES; run: node scripts/error-table.mjs\n`);
  process.exitCode = 1;
}
