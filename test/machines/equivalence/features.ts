/** Which features a walk really took, counted from the live actor's microsteps and the step's effects. */
import type { LiveSnapshot, Step } from '../../../src/machines/step.ts';
import type { ExportedStep } from './reference-exported.ts';
import type { LiveStep } from './reference-live.ts';

const NAMES = [
  'applied',
  'refused',
  'guard_rejected',
  'threw',
  'impossible state',
  'staleRefused',
  'nested target',
  'two regions at once',
  'parallel entered',
  'shallow history remembered',
  'deep history remembered',
  'history by default',
  'always',
  'always at rest',
  'raise',
  'reenter',
  'forbidden',
  'done state',
  'delayed raise armed',
  'after armed',
  'unnamed timer armed',
  'sendTo armed',
  'timer disarmed',
  'timer fired',
  'invoke started',
  'invoke done',
  'invoke failed',
  'failure unhandled',
  'spawned',
  'stopped',
  'child replaced',
  'child started and stopped at once',
  'timer armed and cancelled at once',
  'sendTo child',
  'sendTo self',
  'sendParent',
  'emit',
  'log',
  'enqueueActions',
  'tags',
  'final output',
] as const;
type Name = (typeof NAMES)[number];
export type Features = Record<Name, number>;

export function noFeatures(): Features {
  return Object.fromEntries(NAMES.map((name) => [name, 0])) as Features;
}

interface Taken {
  before: LiveSnapshot;
  step: Step;
  input: { type: string };
}

/** What vanished because one macrostep did and undid it. */
export function countCollapsed(features: Features, { ops, flashed }: Pick<ExportedStep, 'ops' | 'flashed'>): void {
  if (flashed > 0) features['child started and stopped at once']++;
  const undone = ops.some(
    (op, at) => op.op === 'arm' && ops.slice(at).some((later) => later.op === 'cancel' && later.id === op.id),
  );
  if (undone) features['timer armed and cancelled at once']++;
}

export function countFeatures(features: Features, live: LiveStep, taken: Taken | null): void {
  const { net } = live.observed;
  const count = (name: Name, happened: boolean): void => {
    if (happened) features[name]++;
  };
  count(
    'invoke started',
    net.starts.some(({ id }) => id.startsWith('inv')),
  );
  count(
    'spawned',
    net.starts.some(({ id }) => id.startsWith('kid')),
  );
  count('stopped', net.stops.length > 0);
  count(
    'delayed raise armed',
    net.arms.some(({ id, to }) => to === 'self' && id !== null && !id.startsWith('xstate.')),
  );
  count(
    'after armed',
    net.arms.some(({ id }) => id?.startsWith('xstate.after.') === true),
  );
  count(
    'unnamed timer armed',
    net.arms.some(({ id }) => id === null),
  );
  count(
    'sendTo armed',
    net.arms.some(({ to }) => to !== 'self'),
  );
  count('timer disarmed', net.disarms.length > 0);
  count(
    'sendTo child',
    net.sends.some(({ to }) => to.startsWith('kid') || to.startsWith('inv')),
  );
  count(
    'sendTo self',
    net.sends.some(({ to }) => to === 'self'),
  );
  count(
    'sendParent',
    net.sends.some(({ to }) => to === 'parent'),
  );
  count('emit', net.emits.length > 0);
  count(
    'enqueueActions',
    net.emits.some((event) => (event as { type: string }).type === 'queued'),
  );
  count('log', net.logs.length > 0);
  count('tags', live.observed.state.tags.length > 0);
  count('final output', live.observed.state.status === 'done');
  countMicrosteps(features, live, taken);
  if (taken === null) return;
  const { step, input } = taken;
  count('applied', step.applied);
  count('refused', !step.applied);
  count('timer fired', input.type.startsWith('xstate.after.') || ['R', 'S'].includes(input.type));
  count('invoke done', step.applied && input.type.startsWith('xstate.done.actor.inv'));
  count('invoke failed', step.applied && input.type.startsWith('xstate.error.actor.inv'));
  count('failure unhandled', step.snapshot.status === 'error');
}

function countMicrosteps(features: Features, live: LiveStep, taken: Taken | null): void {
  for (const { event, transitions } of live.microsteps) {
    if (event.type !== taken?.input.type && ['R', 'S'].includes(event.type))
      features['raise'] += transitions.length > 0 ? 1 : 0;
    if (transitions.length > 1) features['two regions at once']++;
    for (const { eventType, reenter, target, source } of transitions) {
      if (eventType === '') features['always']++;
      if (eventType?.startsWith('xstate.done.state.') === true) features['done state']++;
      if (reenter && target !== undefined && source.id !== 'm') features['reenter']++;
      if (target === undefined) continue;
      for (const { type, id } of target) {
        if (type === 'parallel') features['parallel entered']++;
        if (id.split('.').length > 2) features['nested target']++;
        if (type === 'history') countHistory(features, id, taken, target);
      }
    }
  }
}

function countHistory(
  features: Features,
  id: string,
  taken: Taken | null,
  target: { type: string; id: string }[],
): void {
  const remembered = taken !== null && Object.hasOwn(taken.before.historyValue, id);
  const node = target.find((one) => one.id === id) as { history?: string } | undefined;
  if (!remembered) features['history by default']++;
  else features[node?.history === 'deep' ? 'deep history remembered' : 'shallow history remembered']++;
}
