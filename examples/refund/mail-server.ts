/** Program: the mail provider. Prints `ready SMTP_PORT QUERY_PORT`. */
import { createServer } from 'node:http';
import { openMailBox } from './mail-box.ts';
import { createMailService } from './mail-smtp.ts';
import { readServerFlags, serve } from './server-process.ts';

const { file, dedupe, misbehave, seed, timings } = readServerFlags();
const box = openMailBox(file, dedupe);
const { smtp, query } = createMailService({ box, misbehave, seed, timings });
await serve([smtp.server, createServer(query)], () => box.close());
