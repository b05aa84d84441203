/** The refund agent: the chart with tools that reach the given servers. */
import { defineAgent } from '../../src/index.ts';
import { refundEvents } from './events.ts';
import { refundContext, refundMachine } from './machine.ts';
import { formatAmount } from './money.ts';
import { refundRequest } from './rows.ts';
import { LOCAL_PROVIDERS, refundTools, type RefundToolOptions } from './tools.ts';

// The type of an agent is what it is made of.
// oxlint-disable-next-line typescript/explicit-module-boundary-types
export function createRefundAgent(options: RefundToolOptions) {
  return defineAgent({
    name: 'refund',
    version: 1,
    machine: refundMachine.provide({ actors: refundTools(options) }),
    events: refundEvents,
    input: refundRequest,
    context: refundContext,
    goal: ({ input }) =>
      `Refund ${formatAmount(input.amountCents, input.currency)} for order ${input.orderId} of ${input.vendor}`,
    accept:
      options.reconcile || options.dedupe ? {} : { 'write-not-recoverable': 'shows what is lost when nobody can ask' },
  });
}

/** For `pawl.config.js` and the export; its servers are the ones started by hand. */
export const refundAgent = createRefundAgent(LOCAL_PROVIDERS);
