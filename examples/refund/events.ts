/** What may be said to a refund from outside. */
import { z } from 'zod';
import { defineEvents } from '../../src/index.ts';

export const refundEvents = defineEvents({
  /** Only until the refund is asked for; then the money may have moved, and this is refused. */
  CANCEL: z.object({ by: z.string() }),
  HOLD: z.object({ by: z.string(), why: z.string() }),
  RESUME: z.object({ by: z.string() }),
  DEADLINE_EXCEEDED: { schema: z.object({}), from: ['machine'] },
});
