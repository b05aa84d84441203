/** Where the runtime says what it does; nothing else in src writes anywhere. */
import type { Json } from '../records.ts';

type Fields = { [field: string]: Json | undefined };

export interface Logger {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };
