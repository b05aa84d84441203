/** Items that cannot be stored as they would be reduced, or whose reducing fails: nothing of them is lost, nothing loops. */
import { isPawlError, messageOf } from '../errors.ts';
import type { Fault } from '../records.ts';
import type { Draft } from './draft.ts';
import { takeReceipt } from './receipts.ts';
import { takeReconciled } from './reconcile-answer.ts';
import { reduceFollowing, reduceInboxEvent, refuse, type Item } from './reduce.ts';

/** The fault of an item whose commit failed because of what the item is; null when it is the store that failed. */
export function faultOfItem(error: unknown): Fault | null {
  for (const code of ['RECORD_TOO_LARGE', 'ENTRY_TOO_LARGE', 'OPERATION_ILLEGAL'] as const) {
    if (isPawlError(error, code)) return { code, message: error.message };
  }
  const isBug = error instanceof TypeError || error instanceof RangeError;
  return isBug ? { code: 'STEP_THREW', message: messageOf(error) } : null;
}

/** An item that cannot be stored as reduced: its fact alone, and a person is asked (DESIGN 3). */
export function reduceAlone(draft: Draft, item: Item, fault: Fault, random: number): void {
  const { message } = fault;
  if (item.kind === 'inbox' && (item.event.body.kind === 'event' || item.event.body.kind === 'release')) {
    draft.position = item.event.position;
    return refuse(draft, item.event, 'step_threw', message);
  }
  draft.escalate('step_threw', { message });
  if (item.kind === 'inbox') {
    draft.position = item.event.position;
    reduceInboxEvent(draft, item.event, random);
  }
  if (item.kind === 'receipt') takeReceipt(draft, item.receipt, item.context);
  if (item.kind === 'reconciled') takeReconciled(draft, item.reconciled, random);
  reduceFollowing(draft);
}

/** Its fact cannot be reduced either: it is kept as it is until somebody has mended what is wrong. */
export function keepItem(draft: Draft, item: Item, { message }: Fault): void {
  const receipt = receiptOf(item);
  const operationId = receipt && draft.operation(receipt.operationId) ? { operationId: receipt.operationId } : {};
  draft.escalate('step_threw', { message, ...operationId });
  if (item.kind === 'inbox') {
    draft.position = item.event.position;
    refuse(draft, item.event, 'step_threw', message);
  }
  if (item.kind === 'receipt' && !item.context.stored && !item.context.invalid && item.receipt.outcome !== 'unknown') {
    draft.receipts.push(item.receipt);
  }
}

function receiptOf(item: Item): { operationId: string } | null {
  if (item.kind === 'receipt') return item.receipt;
  return item.kind === 'inbox' && item.event.body.kind === 'receipt' ? item.event.body.receipt : null;
}
