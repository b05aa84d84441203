/** Program: the payment provider. Prints `ready PORT`. */
import { createServer } from 'node:http';
import { createPaymentApi } from './payment-api.ts';
import { openPaymentLedger } from './payment-ledger.ts';
import { readServerFlags, serve } from './server-process.ts';

const { file, orders, ...rest } = readServerFlags();
const ledger = openPaymentLedger(file, orders);
await serve([createServer(createPaymentApi({ ledger, ...rest }))], () => ledger.close());
