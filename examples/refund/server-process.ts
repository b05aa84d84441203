/** What the two server programs share: their flags, the line that says ready, and when they end. */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { MISBEHAVIOURS } from './conduct.ts';
import { order } from './orders.ts';
import { SERVER_TIMINGS } from './timings.ts';

const timings = z.partialRecord(z.enum(['callerTimeoutMs', 'lateMs', 'slowMs', 'queryDownMs']), z.number());

const flags = z.object({
  file: z.string(),
  misbehave: z.enum(MISBEHAVIOURS).default('none'),
  seed: z.coerce.number().int().default(1),
  dedupe: z
    .enum(['on', 'off'])
    .default('on')
    .transform((word) => word === 'on'),
  /** A JSON file with a list of orders. */
  orders: z
    .string()
    .optional()
    .transform((file) => (file === undefined ? [] : order.array().parse(JSON.parse(readFileSync(file, 'utf8'))))),
  /** JSON; each field overrides a default. */
  timings: z
    .string()
    .default('{}')
    .transform((text) => ({ ...SERVER_TIMINGS, ...timings.parse(JSON.parse(text)) })),
});
export type ServerFlags = z.output<typeof flags>;

export function readServerFlags(): ServerFlags {
  const { values } = parseArgs({
    options: {
      file: { type: 'string' },
      misbehave: { type: 'string' },
      seed: { type: 'string' },
      dedupe: { type: 'string' },
      orders: { type: 'string' },
      timings: { type: 'string' },
    },
  });
  return flags.parse(values);
}

/** Listens on free loopback ports, prints `ready PORT…`, and ends on SIGTERM or when the parent is gone. */
export async function serve(servers: Server[], close: () => void): Promise<void> {
  const ports: number[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    ports.push(typeof address === 'object' && address ? address.port : 0);
  }
  const end = (): void => {
    close();
    process.exit(0);
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  process.once('disconnect', end);
  // The parent may be gone before anybody listened.
  if (process.send && !process.connected) end();
  process.stdout.write(`ready ${ports.join(' ')}\n`);
}
