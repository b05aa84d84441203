/** Texts that a store wrote itself, read back as what they were. */
import type {
  ClosedOperation,
  InboxEvent,
  Json,
  LedgerEntry,
  OperationKey,
  Receipt,
  RunSummary,
  StoredVerdict,
} from '../records.ts';

export const receiptOf = (text: string): Receipt => JSON.parse(text);
export const verdictOf = (text: string): StoredVerdict => JSON.parse(text);
export const summaryOf = (text: string): RunSummary => JSON.parse(text);
export const inboxEventOf = (text: string): InboxEvent => JSON.parse(text);
export const entryOf = (text: string): LedgerEntry => JSON.parse(text);
export const keyOf = (text: string): OperationKey => JSON.parse(text);
export const closedOf = (text: string): ClosedOperation => JSON.parse(text);
export const jsonOf = (text: string): Json => JSON.parse(text);
