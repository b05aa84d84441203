/** Random machines as data: every number is valid, so that fast-check can shrink a recipe freely. */
import fc from 'fast-check';

export type ActionRecipe =
  | { kind: 'assign'; mark: number; inline: boolean }
  | { kind: 'raise'; event: number }
  | { kind: 'later'; event: number; id: number | null; delay: number }
  | { kind: 'cancel'; id: number }
  | { kind: 'emit' | 'log' | 'parent' | 'self'; mark: number }
  | { kind: 'spawn' | 'respawn' | 'stop' | 'flash' | 'tell' | 'tellLater'; kid: number }
  | { kind: 'enqueue'; guard: number; mark: number; event: number };

export interface TransitionRecipe {
  event: number;
  guard: number;
  /** Null: no target. */
  target: number | null;
  reenter: boolean;
  actions: ActionRecipe[];
}

export interface NodeRecipe {
  kind: 'atomic' | 'compound' | 'parallel' | 'final';
  children: NodeRecipe[];
  history: 'none' | 'shallow' | 'deep';
  on: TransitionRecipe[];
  forbid: number | null;
  always: TransitionRecipe | null;
  after: { delay: number; transition: TransitionRecipe } | null;
  invoke: { done: TransitionRecipe | null; error: TransitionRecipe | null; greet: boolean } | null;
  onDone: TransitionRecipe | null;
  entry: ActionRecipe[];
  exit: ActionRecipe[];
  tagged: boolean;
}

export type WalkStep =
  { kind: 'event'; event: number; payload: number } | { kind: 'done' | 'fail' | 'stale' | 'timer'; which: number };

export const EVENTS = ['A', 'B', 'C', 'D'] as const;
/** Raised inside the machine only. */
export const RAISED = ['R', 'S'] as const;
export const KIDS = ['kid0', 'kid1'] as const;
export const TIMERS = ['t0', 't1'] as const;
export const DELAYS = [0, 10, 250] as const;
export const GUARD_COUNT = 9;

const small = fc.nat({ max: 3 });
const target = fc.nat({ max: 40 });

const action: fc.Arbitrary<ActionRecipe> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('assign' as const), mark: fc.nat({ max: 9 }), inline: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('raise' as const), event: fc.nat({ max: 1 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('later' as const),
      event: fc.nat({ max: 1 }),
      id: fc.oneof(fc.constant(null), fc.nat({ max: 1 }), fc.nat({ max: 1 })),
      delay: fc.nat({ max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), id: fc.nat({ max: 1 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('emit' as const, 'log' as const, 'parent' as const, 'self' as const),
      mark: fc.nat({ max: 9 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'spawn' as const,
        'respawn' as const,
        'stop' as const,
        'flash' as const,
        'tell' as const,
        'tellLater' as const,
      ),
      kid: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      guard: fc.nat({ max: GUARD_COUNT }),
      mark: fc.nat({ max: 9 }),
      event: fc.nat({ max: 1 }),
    }),
  },
);

const actions = fc.array(action, { maxLength: 2, size: 'max' });

function maybe<T>(some: number, none: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: none, arbitrary: fc.constant(null) }, { weight: some, arbitrary });
}

const transition: fc.Arbitrary<TransitionRecipe> = fc.record({
  event: fc.nat({ max: EVENTS.length + RAISED.length - 1 }),
  guard: fc.nat({ max: GUARD_COUNT * 2 }),
  target: maybe(5, 1, target),
  reenter: fc.nat({ max: 3 }).map((number) => number === 0),
  actions,
});

function node(depth: number): fc.Arbitrary<NodeRecipe> {
  const leaf = depth === 0;
  const kinds = leaf
    ? (['atomic', 'atomic', 'final'] as const)
    : (['compound', 'compound', 'compound', 'parallel', 'parallel', 'atomic', 'final'] as const);
  return fc.record<NodeRecipe>({
    kind: fc.constantFrom<NodeRecipe['kind'][]>(...kinds),
    children: leaf ? fc.constant([]) : fc.array(node(depth - 1), { minLength: 2, maxLength: 3, size: 'max' }),
    history: fc.constantFrom('none' as const, 'shallow' as const, 'deep' as const),
    on: fc.array(transition, { minLength: 1, maxLength: 3, size: 'max' }),
    forbid: maybe(1, 5, fc.nat({ max: EVENTS.length - 1 })),
    always: maybe(1, 7, transition),
    after: maybe(1, 3, fc.record({ delay: fc.nat({ max: 3 }), transition })),
    invoke: maybe(
      1,
      2,
      fc.record({ done: maybe(4, 1, transition), error: maybe(4, 1, transition), greet: fc.boolean() }),
    ),
    onDone: maybe(1, 1, transition),
    entry: actions,
    exit: actions,
    tagged: fc.boolean(),
  });
}

export interface MachineRecipe {
  parallel: boolean;
  root: NodeRecipe;
}

/** The root is compound or parallel, whatever its own kind says. */
export const machineRecipe: fc.Arbitrary<MachineRecipe> = fc.record({
  parallel: fc.nat({ max: 4 }).map((number) => number === 0),
  root: node(3),
});

export const walkRecipe: fc.Arbitrary<WalkStep[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('event' as const),
        event: fc.nat({ max: EVENTS.length - 1 }),
        payload: small,
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('done' as const), which: small }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('fail' as const, 'stale' as const), which: small }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('timer' as const), which: small }) },
  ),
  { minLength: 6, maxLength: 14, size: 'max' },
);
