/** A provider in the test's own process, which no worker's death touches: it counts effects and can hold an answer. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface ProviderServer {
  url: string;
  /** Every effect in the order in which it landed. */
  effects: { name: string; order: string; operationId: string }[];
  /** Requests and questions so far. */
  requests: number;
  /** Called after the effect and before its answer; what it returns is waited for. */
  beforeAnswer: (effect: { name: string; order: string; operationId: string }) => Promise<void> | void;
  close(): Promise<void>;
}

export async function startProvider(): Promise<ProviderServer> {
  const server: Server = createServer((request, response) => {
    provider.requests++;
    void (async () => {
      if (request.method === 'POST') {
        const effect = (await json(request)) as ProviderServer['effects'][number];
        provider.effects.push(effect);
        await provider.beforeAnswer(effect);
        response.end(JSON.stringify({ id: `${effect.name}-${effect.order}` }));
        return;
      }
      const operationId = request.url?.split('/').at(-1);
      const effect = provider.effects.find((known) => known.operationId === operationId);
      response.end(JSON.stringify({ id: effect ? `${effect.name}-${effect.order}` : null }));
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider: ProviderServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effects: [],
    requests: 0,
    beforeAnswer: () => {},
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return provider;
}
