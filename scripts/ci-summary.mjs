// The closing line of .ci/run, made from the test runner's JSON report.
import { readFileSync } from 'node:fs';

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped, numTodoTests: todo } = report;
for (const suite of report.testResults) {
  // A file that could not be loaded has no tests to count.
  if (suite.status === 'failed' && suite.assertionResults.length === 0)
    process.stdout.write(`not loaded: ${suite.name}\n`);
}
const unloaded = report.testResults.filter((s) => s.status === 'failed' && s.assertionResults.length === 0).length;
const left = skipped + todo;
process.stdout.write(`${passed} passed, ${failed + unloaded} failed${left > 0 ? `, ${left} skipped` : ''}\n`);
if (failed + unloaded > 0 || passed === 0) process.exitCode = 1;
