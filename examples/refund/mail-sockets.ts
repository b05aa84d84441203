/** Connections to a mail server, some of them opened ahead: the server greets only 100 ms after it was connected to. */
import { connect, type Socket } from 'node:net';
import { NotExecuted } from '../../src/index.ts';
import { errorCodeOf } from './provider-call.ts';

export interface MailSockets {
  /** A connected socket of one's own. Throws NotExecuted when the server is not there. */
  take(signal: AbortSignal): Promise<Socket>;
}

/** Keeps `ahead` connections open beside those that are taken; they keep no process alive. */
export function createMailSockets(host: string, port: number, ahead: number): MailSockets {
  const idle = new Set<Socket>();

  function fill(): void {
    while (idle.size < ahead) {
      const socket = connect({ host, port }).unref();
      // A connection that ends before it was needed is no loss.
      socket.on('error', ignore).once('close', () => idle.delete(socket));
      idle.add(socket);
    }
  }

  function takeIdle(): Socket | null {
    for (const socket of idle) {
      if (socket.readyState !== 'open') continue;
      idle.delete(socket);
      return socket.off('error', ignore).ref();
    }
    return null;
  }

  fill();
  return {
    async take(signal) {
      const socket = takeIdle() ?? (await openSocket(host, port, signal));
      fill();
      return socket;
    },
  };
}

function ignore(): void {}

function openSocket(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const abort = (): void => void socket.destroy(new Error('aborted before the connection was open'));
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort);
      socket.removeAllListeners('error');
      resolve(socket);
    });
    socket.once('error', (error) => {
      signal.removeEventListener('abort', abort);
      const refused = errorCodeOf(error) === 'ECONNREFUSED';
      reject(refused ? new NotExecuted(`${host}:${port} refused the connection`, { cause: error }) : error);
    });
  });
}
