/** Why a schema cannot describe stored data. */
import { z } from 'zod';
import { messageOf } from '../errors.ts';

/**
 * Says why values of the schema are not plain JSON on both sides (dates, bigints, transforms, custom types), or null.
 * What is stored is parsed again at the next step, so a schema must not change what it reads.
 */
export function schemaProblem(schema: z.ZodType): string | null {
  for (const io of ['input', 'output'] as const) {
    try {
      z.toJSONSchema(schema, { io });
    } catch (error) {
      return `its ${io} is not plain JSON (${messageOf(error)})`;
    }
  }
  return null;
}
