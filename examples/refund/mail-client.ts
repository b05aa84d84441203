/** The mail provider as its callers see it: SMTP to send, HTTP to ask what became of a message id. */
import { createTransport } from 'nodemailer';
import { z } from 'zod';
import { NotExecuted, ToolFailure } from '../../src/index.ts';
import { mail, type Mail } from './mail-box.ts';
import { createMailSockets } from './mail-sockets.ts';
import { acceptedBody, callProvider } from './provider-call.ts';

export interface Notice {
  messageId: string;
  orderId: string;
  to: string;
  subject: string;
  text: string;
  /** Asks the server to wait before it stores the mail: the caller is about to be killed. */
  holdMs: number;
}

export interface MailClient {
  send(notice: Notice, signal: AbortSignal): Promise<void>;
  /** The stored mails with this id; empty means that none came so far. */
  withMessageId(messageId: string, signal: AbortSignal): Promise<Mail[]>;
}

const found = z.object({ messages: mail.array() });

/** The same operation is the same message at every attempt, so that the server can be asked for it. */
export function messageIdOf(operationId: string): string {
  return `<${operationId}@refunds.example>`;
}

/** `socketsAhead`: connections kept open beside those in use, so that a mail need not wait for the greeting. */
export function createMailClient(smtpUrl: string, mailQueryUrl: string, socketsAhead = 0): MailClient {
  const { hostname, port } = new URL(smtpUrl);
  const sockets = createMailSockets(hostname, Number(port), socketsAhead);
  return {
    async send(notice, signal) {
      // One socket per mail, held here, so that an abort ends the conversation wherever it is.
      const socket = await sockets.take(signal);
      const abort = (): void => void socket.destroy();
      signal.addEventListener('abort', abort);
      const transport = createTransport({
        host: hostname,
        port: Number(port),
        ignoreTLS: true,
        getSocket: (_options, done) => done(null, { connection: socket }),
      });
      try {
        await transport.sendMail({
          from: 'refunds@pawl.example',
          to: notice.to,
          subject: notice.subject,
          text: notice.text,
          messageId: notice.messageId,
          headers: {
            'X-Order-Id': notice.orderId,
            ...(notice.holdMs > 0 ? { 'X-Crash-Hold': String(notice.holdMs) } : {}),
          },
        });
      } catch (error) {
        throw classified(error);
      } finally {
        signal.removeEventListener('abort', abort);
        socket.destroy();
      }
    },
    async withMessageId(messageId, signal) {
      const url = `${mailQueryUrl}/messages?messageId=${encodeURIComponent(messageId)}`;
      return found.parse(acceptedBody(await callProvider(url, { signal }))).messages;
    },
  };
}

/** 5yz is a no for good and 4yz a no for now: both say that the mail was not taken. Without a reply nobody knows. */
function classified(error: unknown): unknown {
  const reply = z.object({ responseCode: z.int() }).safeParse(error);
  if (!reply.success) return error;
  const { responseCode } = reply.data;
  const message = `refused with ${responseCode}`;
  if (responseCode >= 500) return new ToolFailure(message, { details: { status: responseCode }, cause: error });
  if (responseCode >= 400) return new NotExecuted(message, { details: { status: responseCode }, cause: error });
  return error;
}
