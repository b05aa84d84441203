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
 * The net of what was asked for: the rules of the step, written a second time from the sentences that state them. `lost`
 * are ops of children that never ran, or that XState forgot because another got their id; `forgotten` are ids of children
 * from before the macrostep that it forgot: here they stop. Both are found by object identity. `activeBefore` are ids of
 * states: a timer of one of those may be armed already.
 */
export function netOf(
  ops: readonly Op[],
  lost: ReadonlySet<Op>,
  forgotten: readonly string[],
  activeBefore: readonly string[],
): Net {
  const net: Net = { stops: [], disarms: [], starts: [], arms: [], sends: [], emits: [], logs: [] };
  const aboutTimer = (op: Op, id: string): boolean => (op.op === 'arm' || op.op === 'cancel') && op.id === id;
  ops.forEach((op, index) => {
    if (lost.has(op)) return;
    if (op.op === 'start') net.starts.push({ id: op.id, src: op.src, input: op.input });
    if (op.op === 'stop') net.stops.push(op.id);
    if (op.op === 'send') net.sends.push({ to: op.to, event: op.event });
    if (op.op === 'emit') net.emits.push(op.event);
    if (op.op === 'log') net.logs.push({ label: op.label, value: op.value });
    if (op.op === 'arm') {
      const { id, delay, event, to } = op;
      if (id === null || !ops.slice(index + 1).some((later) => aboutTimer(later, id)))
        net.arms.push({ id, delay, event, to });
    }
    if (op.op === 'cancel' && !net.disarms.includes(op.id)) {
      const armedFirst = ops.find((other) => aboutTimer(other, op.id))?.op === 'arm';
      const ofNewState = op.id.startsWith('xstate.after.') && !activeBefore.some((id) => op.id.endsWith(`.${id}`));
      if (!(armedFirst && ofNewState)) net.disarms.push(op.id);
    }
  });
  net.stops.push(...forgotten);
  return net;
}
