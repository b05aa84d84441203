/** What any of the three ways to run a machine shows of one macrostep, in one form. Children go by id, not by invocation. */
import type { Json } from '../../../src/records.ts';

/** One thing asked for, in the order in which it was asked. */
export type Op =
  | { op: 'start'; id: string; src: string; input: Json }
  | { op: 'stop'; id: string }
  | { op: 'arm'; id: string | null; delay: number; event: Json; to: string }
  | { op: 'cancel'; id: string }
  | { op: 'send'; to: string; event: Json }
  | { op: 'emit'; event: Json }
  | { op: 'log'; label: string | null; value: Json };

/** Net effects of one macrostep. */
export interface Net {
  stops: string[];
  disarms: string[];
  starts: { id: string; src: string; input: Json }[];
  arms: { id: string | null; delay: number; event: Json; to: string }[];
  sends: { to: string; event: Json }[];
  emits: Json[];
  logs: { label: string | null; value: Json }[];
}

export interface State {
  value: Json;
  context: Json;
  history: Json;
  status: string;
  output: Json;
  error: Json;
  tags: string[];
  children: [string, string][];
}

export interface Observed {
  threw: boolean;
  state: State;
  net: Net;
}

/**
 * Collapses what was asked for: the same rules as the step's, written a second time from the sentence that states them.
 * XState forgets a child whose id is started again; here that one stops. `undelivered` are sends to children that never ran; each reference knows them by object identity.
 */
export function netOf(asked: readonly Op[], liveBefore: readonly string[], undelivered: ReadonlySet<Op>): Net {
  const ops = withReplacements(asked, liveBefore);
  const net: Net = { stops: [], disarms: [], starts: [], arms: [], sends: [], emits: [], logs: [] };
  const vanished = new Set(ops.flatMap((op, index) => (undelivered.has(op) ? [index] : [])));
  ops.forEach((op, index) => {
    if (op.op !== 'stop') return;
    const started = ops.findLastIndex(
      (other, at) => at < index && other.op === 'start' && other.id === op.id && !vanished.has(at),
    );
    if (started >= 0) vanished.add(started).add(index);
  });
  const last = (id: string | null, from: number): boolean =>
    id === null || !ops.some((op, at) => at > from && (op.op === 'arm' || op.op === 'cancel') && op.id === id);
  const firstOn = (id: string): Op | undefined =>
    ops.find((op) => (op.op === 'arm' || op.op === 'cancel') && op.id === id);
  ops.forEach((op, index) => {
    if (vanished.has(index)) return;
    if (op.op === 'start') net.starts.push({ id: op.id, src: op.src, input: op.input });
    if (op.op === 'stop') net.stops.push(op.id);
    if (op.op === 'send') net.sends.push({ to: op.to, event: op.event });
    if (op.op === 'emit') net.emits.push(op.event);
    if (op.op === 'log') net.logs.push({ label: op.label, value: op.value });
    if (op.op === 'arm' && last(op.id, index))
      net.arms.push({ id: op.id, delay: op.delay, event: op.event, to: op.to });
    if (op.op === 'cancel' && !net.disarms.includes(op.id)) {
      const own = op.id.startsWith('xstate.after.') && firstOn(op.id)?.op === 'arm';
      if (!own) net.disarms.push(op.id);
    }
  });
  return net;
}

/** Whether a child is started under an id that is live. */
export function hasReplacement(ops: readonly Op[], liveBefore: readonly string[]): boolean {
  return withReplacements(ops, liveBefore).length > ops.length;
}

function withReplacements(ops: readonly Op[], liveBefore: readonly string[]): Op[] {
  const live = new Set(liveBefore);
  return ops.flatMap((op): Op[] => {
    if (op.op === 'stop') live.delete(op.id);
    if (op.op !== 'start') return [op];
    const replaces = live.has(op.id);
    live.add(op.id);
    return replaces ? [{ op: 'stop', id: op.id }, op] : [op];
  });
}
