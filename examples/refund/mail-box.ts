/** The mail server's own database: one row per mail it took. The judge of the notices. */
import Database from 'libsql';
import { z } from 'zod';
import { duplicate } from './payment-ledger.ts';

export const mail = z.object({
  messageId: z.string(),
  orderId: z.string(),
  recipient: z.string(),
  sizeBytes: z.int(),
  receivedAtMs: z.int(),
});
export type Mail = z.infer<typeof mail>;

export const mailJudgement = z.object({
  effects: z.int(),
  /** Orders with more than one mail, whatever the message ids. */
  duplicates: duplicate.array(),
  mails: mail.array(),
  /** Mails under way; one may still be stored. */
  pending: z.int(),
});
export type MailJudgement = z.infer<typeof mailJudgement>;

export interface MailBox {
  /** Whether a mail with this message id is to be taken as the one that is stored already; never without dedupe. */
  repeats(messageId: string): boolean;
  /** One row, synced before it returns; none if the mail repeats a stored one. */
  add(received: Omit<Mail, 'receivedAtMs'>): void;
  withMessageId(messageId: string): Mail[];
  judge(): Omit<MailJudgement, 'pending'>;
  close(): void;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS mails (
    number INTEGER PRIMARY KEY AUTOINCREMENT, messageId TEXT, orderId TEXT, recipient TEXT, sizeBytes INTEGER,
    receivedAtMs INTEGER);
  CREATE INDEX IF NOT EXISTS mailsByMessage ON mails (messageId);`;

const MAIL = 'SELECT messageId, orderId, recipient, sizeBytes, receivedAtMs FROM mails';

const DUPLICATES = 'SELECT orderId, count(*) AS effects FROM mails GROUP BY orderId HAVING count(*) > 1';

export function openMailBox(file: string, dedupe: boolean): MailBox {
  const database = new Database(file);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec(SCHEMA);
  const insert = database.prepare(
    'INSERT INTO mails (messageId, orderId, recipient, sizeBytes, receivedAtMs) VALUES (?, ?, ?, ?, ?)',
  );
  const byMessageId = database.prepare(`${MAIL} WHERE messageId = ? ORDER BY number`);
  const withMessageId = (messageId: string): Mail[] => mail.array().parse(byMessageId.all(messageId));

  const repeats = (messageId: string): boolean => dedupe && withMessageId(messageId).length > 0;

  return {
    withMessageId,
    repeats,
    add({ messageId, orderId, recipient, sizeBytes }) {
      if (repeats(messageId)) return;
      insert.run(messageId, orderId, recipient, sizeBytes, Date.now());
    },
    judge() {
      const mails = mail.array().parse(database.prepare(`${MAIL} ORDER BY number`).all());
      const duplicates = duplicate.array().parse(database.prepare(DUPLICATES).all());
      return { effects: mails.length, duplicates, mails };
    },
    close() {
      database.close();
    },
  };
}
