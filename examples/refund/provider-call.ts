/** One HTTP call to a provider, and what its answer proves. */
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import { json } from 'node:stream/consumers';
import { NotExecuted, ToolFailure } from '../../src/index.ts';

export interface Reply {
  status: number;
  body: unknown;
}

export interface Call {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

/**
 * Sends and reads JSON. Throws NotExecuted when no connection came about, so that nothing was sent; any other throw
 * says nothing about what happened. (Not `fetch`: its first call costs 30 ms, and a worker that is killed every 300 ms
 * makes many first calls.)
 */
export async function callProvider(url: string, { body, ...options }: Call): Promise<Reply> {
  try {
    const response = await send(url, options, body);
    return { status: response.statusCode ?? 0, body: await json(response) };
  } catch (error) {
    if (errorCodeOf(error) === 'ECONNREFUSED') throw new NotExecuted(`${url} refused the connection`, { cause: error });
    throw error;
  }
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
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
  return typeof code === 'string' ? code : null;
}

function send(url: string, options: RequestOptions, body = ''): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, options, resolve).once('error', reject).end(body);
  });
}

function reasonIn(body: unknown): string {
  const reason = typeof body === 'object' && body !== null && 'error' in body ? body.error : null;
  return typeof reason === 'string' ? reason : 'no reason given';
}
