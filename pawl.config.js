// `npx pawl` in a clone: the refund agent, and the runs of the latest `pawl demo` (else the default store).
import { existsSync, readdirSync } from 'node:fs';
import { refundAgent } from './dist/examples/refund/agent.js';

// A demo without --store names its store after the time at which it began.
const demos = existsSync('.pawl') ? readdirSync('.pawl').filter((name) => /^demo-\d+\.db$/.test(name)) : [];

export default { agents: [refundAgent], store: `sqlite:./.pawl/${demos.toSorted().at(-1) ?? 'pawl.db'}` };
