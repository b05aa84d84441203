/** The mail provider over SMTP and its query over HTTP, misbehaving as told. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerError, type SMTPServerSession } from 'smtp-server';
import { conductOf, type ConductRule } from './conduct.ts';
import type { MailBox } from './mail-box.ts';
import { perform } from './perform.ts';
import { createQueryOutage } from './query-outage.ts';
import type { ServerTimings } from './timings.ts';

export interface MailServerOptions extends ConductRule {
  box: MailBox;
  timings: ServerTimings;
}

export interface MailService {
  smtp: SMTPServer;
  query: RequestListener;
}

type Done = (error?: Error | null, message?: string) => void;

export function createMailService(options: MailServerOptions): MailService {
  const { box, seed, timings } = options;
  const sockets = new Map<number, Socket>();
  /** Mails seen per order, in memory: the attempt number that a conduct is drawn for. */
  const seen = new Map<string, number>();
  const outage = createQueryOutage(timings.queryDownMs);
  let pending = 0;

  async function receive(raw: Buffer, session: SMTPServerSession, done: Done): Promise<void> {
    const header = readHeader(raw);
    const messageId = header('message-id');
    const orderId = header('x-order-id');
    // A repeated mail gets the answer that the first one should have got.
    if (box.repeats(messageId)) return done(null, 'stored');
    const attempt = (seen.get(orderId) ?? 0) + 1;
    seen.set(orderId, attempt);
    const drawn = conductOf(options, orderId, attempt);
    if (drawn === 'query-down') outage.arm(messageId);
    const socket = sockets.get(session.remotePort);
    const recipient = session.envelope.rcptTo[0]?.address ?? '';
    const effect = (): void => box.add({ messageId, orderId, recipient, sizeBytes: raw.length });
    await perform(
      {
        orderId,
        // A mailbox refuses at RCPT, before it has seen an order; a mail has no amount that could be wrong.
        conduct: drawn === 'refuse' || drawn === 'wrong-amount' ? 'behave' : drawn,
        holdMs: Number(header('x-crash-hold') || 0),
        closed: closeOf(socket),
        effect,
        wrongEffect: effect,
        refuse: () => done(reply(550, 'refused')),
        answer: () => done(null, 'stored'),
        fail: () => done(reply(451, 'try again later')),
        reset: () => void socket?.resetAndDestroy(),
      },
      seed,
      timings,
    );
  }

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    disableReverseLookup: true,
    closeTimeout: 100,
    onRcptTo: ({ address }, _session, done) => {
      done(conductOf(options, address, 1) === 'refuse' ? reply(550, 'no such mailbox') : null);
    },
    onData: (stream, session, done) => {
      // A caller that dies before the mail is complete has sent none.
      buffer(stream).then(
        (raw) => {
          pending += 1;
          return receive(raw, session, done).finally(() => (pending -= 1));
        },
        () => undefined,
      );
    },
  });
  smtp.server.on('connection', (socket: Socket) => {
    const port = socket.remotePort ?? 0;
    sockets.set(port, socket);
    socket.once('close', () => sockets.delete(port));
  });
  // A caller that died in the middle of a command is no error of this server.
  smtp.on('error', () => undefined);

  const query: RequestListener = (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const messageId = url.searchParams.get('messageId');
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (url.pathname === '/judge') return send(200, { ...box.judge(), pending });
    if (url.pathname !== '/messages' || messageId === null) return send(404, { error: 'not_found' });
    if (outage.isDown(messageId)) return send(503, { error: 'unavailable' });
    send(200, { messages: box.withMessageId(messageId) });
  };

  return { smtp, query };
}

function reply(responseCode: number, message: string): SMTPServerError {
  return Object.assign(new Error(message), { responseCode });
}

function closeOf(socket: Socket | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (!socket || socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Looks up header fields by lower-case name; a folded line belongs to the one before. */
function readHeader(raw: Buffer): (name: string) => string {
  const [head = ''] = raw.toString('utf8').split('\r\n\r\n', 1);
  const fields = new Map<string, string>();
  for (const line of head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return (name) => fields.get(name) ?? '';
}
