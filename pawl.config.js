// `npx pawl` in a clone: the refund agent, and the runs of the latest `pawl demo` (else the default store).
import { readdirSync, statSync } from 'node:fs';
import { refundAgent } from './dist/examples/refund/agent.js';

/** @returns {string} */
function latestDemo() {
  try {
    const stores = readdirSync('.pawl').filter((name) => /^demo-\d+\.db$/.test(name));
    const newest = stores.toSorted((a, b) => statSync(`.pawl/${b}`).mtimeMs - statSync(`.pawl/${a}`).mtimeMs)[0];
    return `sqlite:./.pawl/${newest ?? 'pawl.db'}`;
  } catch {
    return 'sqlite:./.pawl/pawl.db';
  }
}

export default { agents: [refundAgent], store: latestDemo() };
