/** One HTTP call to a provider, and what its answer proves. */
import { NotExecuted, ToolFailure } from '../../src/index.ts';

export interface Reply {
  status: number;
  body: unknown;
}

/**
 * Sends and reads JSON. Throws NotExecuted when no connection came about, so that nothing was sent; any other throw
 * says nothing about what happened.
 */
export async function callProvider(url: string, init: RequestInit): Promise<Reply> {
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (errorCodeOf(error) === 'ECONNREFUSED') throw new NotExecuted(`${url} refused the connection`, { cause: error });
    throw error;
  }
  return { status: response.status, body: await response.json() };
}

/** The answer to a request that was to change something: 4xx is the provider's no for good, 5xx proves nothing. */
export function acceptedBody(reply: Reply): unknown {
  if (reply.status >= 400 && reply.status < 500) {
    throw new ToolFailure(`refused with ${reply.status}: ${reasonIn(reply.body)}`, {
      details: { status: reply.status },
    });
  }
  if (reply.status >= 300) throw new Error(`answered ${reply.status}: ${reasonIn(reply.body)}`);
  return reply.body;
}

export function errorCodeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : errorCodeOf(cause);
}

function reasonIn(body: unknown): string {
  const reason = typeof body === 'object' && body !== null ? (body as { error?: unknown }).error : null;
  return typeof reason === 'string' ? reason : 'no reason given';
}
