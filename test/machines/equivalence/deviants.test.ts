/** The comparison itself is tested: each planted deviation must be found. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Effect } from '../../../src/machines/effects.ts';
import * as steps from '../../../src/machines/step.ts';
import type { LiveSnapshot, Step } from '../../../src/machines/step.ts';
import { compareWalk, type StepFunctions } from './compare.ts';
import { noFeatures } from './features.ts';
import { Difference } from './our-run.ts';
import { machineRecipe, walkRecipe } from './recipe.ts';

const SEED = 20261130;

/** The real functions with their results changed. */
function altered(change: (step: Step, before: LiveSnapshot | null) => Step): StepFunctions {
  return {
    initialStep: (...args) => change(steps.initialStep(...args), null),
    eventStep: (...args) => change(steps.eventStep(...args), args[1]),
    completionStep: (...args) => change(steps.completionStep(...args), args[1]),
  };
}

const withEffects = (change: (effects: Effect[]) => Effect[]): StepFunctions =>
  altered((step) => ({ ...step, effects: change(step.effects) }));

function without(kind: Effect['kind']): StepFunctions {
  return withEffects((effects) => effects.filter((effect) => effect.kind !== kind));
}

/** The last of the effects of one kind is lost, and only if there are several. */
function withoutLastOfSeveral(kind: Effect['kind']): StepFunctions {
  return withEffects((effects) => {
    const own = effects.filter((effect) => effect.kind === kind);
    return own.length < 2 ? effects : effects.filter((effect) => effect !== own.at(-1));
  });
}

const DEVIANTS: [string, StepFunctions][] = [
  ['a stop is lost', without('stop')],
  ['the second stop of a step is lost', withoutLastOfSeveral('stop')],
  ['a timer is not disarmed', without('disarm')],
  ['the second timer of a step is not armed', withoutLastOfSeveral('arm')],
  ['starts come before stops', withEffects((effects) => effects.toSorted((one, other) => rank(one) - rank(other)))],
  [
    'sends change their order',
    withEffects((effects) =>
      [
        ...effects.filter((effect) => effect.kind !== 'send'),
        ...effects.filter((effect) => effect.kind === 'send').toReversed(),
      ].toSorted(byKind),
    ),
  ],
  [
    'a delay is a millisecond late',
    withEffects((effects) =>
      effects.map((effect) => (effect.kind === 'arm' ? { ...effect, delayMs: effect.delayMs + 1 } : effect)),
    ),
  ],
  [
    'the history is that of the step before',
    altered((step, before) =>
      before === null
        ? step
        : { ...step, snapshot: Object.assign({}, step.snapshot, { historyValue: before.historyValue }) },
    ),
  ],
  ['a completion is delivered whatever its invocation', { ...steps, completionStep: deliverAnyway }],
  ['a settled child is not taken out', { ...steps, completionStep: keepChild }],
  [
    'tags stay',
    altered((step, before) =>
      before === null ? step : { ...step, snapshot: Object.assign({}, step.snapshot, { tags: before.tags }) },
    ),
  ],
  [
    'an event nobody takes still runs the step',
    {
      ...steps,
      eventStep: (machine, snapshot, event, at) => ({
        ...steps.eventStep(machine, snapshot, event, at),
        applied: true,
      }),
    },
  ],
];

function rank(effect: Effect): number {
  return ['start', 'stop', 'disarm', 'arm', 'send', 'emit', 'log'].indexOf(effect.kind);
}

function byKind(one: Effect, other: Effect): number {
  const order = ['stop', 'disarm', 'start', 'arm', 'send', 'emit', 'log'];
  return order.indexOf(one.kind) - order.indexOf(other.kind);
}

function deliverAnyway(
  ...[machine, snapshot, invocation, completion, at]: Parameters<StepFunctions['completionStep']>
): Step {
  const live = (snapshot.children as Record<string, { sessionId: string } | undefined>)[invocation.id];
  const invocationId = live?.sessionId ?? invocation.invocationId;
  return steps.completionStep(machine, snapshot, { id: invocation.id, invocationId }, completion, at);
}

function keepChild(...args: Parameters<StepFunctions['completionStep']>): Step {
  const step = steps.completionStep(...args);
  if (step.applied) return step;
  return { ...step, snapshot: Object.assign({}, step.snapshot, { children: args[1].children }) };
}

test('the real functions pass the walks that the deviants are tried on', () => {
  expect(findDifference(steps, 60)).toBeNull();
});

test.each(DEVIANTS)('found: %s', (_name, functions) => {
  expect(findDifference(functions, 400)).toMatch(/\w/);
});

function findDifference(functions: StepFunctions, numRuns: number): string | null {
  const features = noFeatures();
  const details = fc.check(
    fc.property(machineRecipe, walkRecipe, (recipe, walk) => compareWalk(recipe, walk, features, functions)),
    { seed: SEED, numRuns, endOnFailure: true },
  );
  if (!details.failed) return null;
  const error: unknown = details.errorInstance;
  if (!(error instanceof Difference)) throw error;
  return error.message;
}
