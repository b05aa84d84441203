/** From a recipe to an XState machine. */
import {
  and,
  assign,
  cancel,
  emit,
  enqueueActions,
  log,
  not,
  or,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stateIn,
  stopChild,
  type AnyStateMachine,
} from 'xstate';
import { fakeTool } from '../machines.ts';
import {
  DELAYS,
  EVENTS,
  KIDS,
  RAISED,
  TIMERS,
  type ActionRecipe,
  type MachineRecipe,
  type NodeRecipe,
  type TransitionRecipe,
} from './recipe.ts';

interface Context {
  n: number;
  trail: string[];
  kids: string[];
}
type Args = { context: Context; event: { type: string; x?: number } };
// The config is assembled from data; XState's types describe literals.
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;

export interface BuiltMachine {
  machine: AnyStateMachine;
  /** Uses sendParent, which the exported `transition` cannot do. */
  hasParent: boolean;
}

interface Building {
  ids: string[];
  invokes: number;
  hasParent: boolean;
}

export function buildMachine(recipe: MachineRecipe): BuiltMachine {
  const building: Building = { ids: [], invokes: 0, hasParent: false };
  // Below the root, nodes may be final only next to others.
  const root: NodeRecipe = { ...recipe.root, kind: recipe.parallel ? 'parallel' : 'compound' };
  const shape = plan(root, 'm', building);
  const config = toConfig(shape, building);
  const machine = setup({
    types: {} as { context: Context; events: Loose },
    actors: { job: fakeTool('job') },
    actions: { mark: assign((args: Args, params: Loose) => marked(args, params.mark as number)) as Loose },
    guards: {
      even: ({ context }: Args) => context.n % 2 === 0,
      atMost: ({ context }: Args, params: { max: number }) => context.n <= params.max,
      paid: ({ event }: Args) => (event.x ?? 0) > 1,
      both: and(['even', 'paid'] as Loose) as Loose,
    },
    delays: { dynamic: ({ context }: Args) => context.n * 10, fixed: 40 },
  }).createMachine({
    ...config,
    id: 'm',
    context: { n: 0, trail: [], kids: [] },
    options: { maxIterations: 25 },
    on: { ...(config['on'] as object), ...kidCompletions() },
    output: ({ context, event }: Loose) => ({ n: context.n, out: event.output ?? null }),
  } as Loose);
  return { machine, hasParent: building.hasParent };
}

function marked({ context, event }: Args, mark: number): Partial<Context> {
  return {
    n: (context.n + mark + (event.x ?? 0)) % 7,
    trail: [...context.trail, `${event.type.slice(0, 24)}:${mark}`].slice(-8),
  };
}

/** A spawned child has no onDone; its end is an event of the root. */
function kidCompletions(): object {
  return Object.fromEntries(
    KIDS.flatMap((kid) =>
      ['done', 'error'].map((end) => [
        `xstate.${end}.actor.${kid}`,
        { actions: assign({ kids: ({ context }: Loose) => context.kids.filter((other: string) => other !== kid) }) },
      ]),
    ),
  );
}

interface Shape {
  recipe: NodeRecipe;
  id: string;
  kind: NodeRecipe['kind'];
  children: Shape[];
  history: NodeRecipe['history'];
}

/** Fixes kinds and collects every target: real nodes, and history nodes by name. */
function plan(recipe: NodeRecipe, id: string, building: Building): Shape {
  const hasChildren = recipe.kind === 'compound' || recipe.kind === 'parallel';
  const children = hasChildren
    ? recipe.children.map((child, index) => plan(keepable(child, index, recipe.kind), `${id}.s${index}`, building))
    : [];
  const kind = hasChildren && children.length === 0 ? 'atomic' : recipe.kind;
  const shape: Shape = { recipe, id, kind, children, history: children.length === 0 ? 'none' : recipe.history };
  if (id !== 'm') building.ids.push(id);
  if (shape.history !== 'none') building.ids.push(`${id}.h`, `${id}.h`);
  return shape;
}

/** An initial state or a region that is final ends its parent at once: allowed for regions, not for initial states. */
function keepable(child: NodeRecipe, index: number, parent: NodeRecipe['kind']): NodeRecipe {
  return child.kind === 'final' && (index === 0 || parent === 'parallel') ? { ...child, kind: 'atomic' } : child;
}

function toConfig(shape: Shape, building: Building): Record<string, Loose> {
  const { recipe, kind } = shape;
  const own = (list: ActionRecipe[]): Loose[] => list.flatMap((action) => toActions(action, building));
  if (kind === 'final')
    return { type: 'final', entry: own(recipe.entry), output: ({ context }: Args) => ({ n: context.n }) };
  const edge = (transition: TransitionRecipe): Loose => toTransition(transition, shape.id, building);
  const config: Record<string, Loose> = {
    entry: own(recipe.entry),
    exit: own(recipe.exit),
    on: toOn(recipe, shape.id, building),
    ...(recipe.tagged ? { tags: [`tag-${shape.id}`] } : {}),
  };
  if (recipe.always !== null && shape.id !== 'm') {
    // Not on the payload: an event that selects nothing changes nothing here, XState would ask again.
    const guard = ['even', { type: 'atMost', params: { max: 2 } }, not('even')][recipe.always.guard % 3];
    config['always'] = { ...edge(recipe.always), guard };
  }
  if (recipe.after !== null) {
    const delay = ['5', '70', 'dynamic', 'fixed'][recipe.after.delay] as string;
    config['after'] = { [delay]: edge(recipe.after.transition) };
  }
  if (recipe.invoke !== null) {
    const id = `inv${building.invokes++}`;
    config['invoke'] = {
      src: 'job',
      id,
      input: ({ context, event }: Args) => ({ n: context.n, by: event.type }),
      ...(recipe.invoke.done === null ? {} : { onDone: edge(recipe.invoke.done) }),
      ...(recipe.invoke.error === null ? {} : { onError: edge(recipe.invoke.error) }),
    };
    if (recipe.invoke.greet) config['entry'].push(sendTo(id, { type: 'HELLO' }));
  }
  if (kind === 'atomic') return config;
  if (recipe.onDone !== null) config['onDone'] = edge(recipe.onDone);
  if (kind === 'parallel') config['type'] = 'parallel';
  else config['initial'] = 's0';
  const states = Object.fromEntries(shape.children.map((child, index) => [`s${index}`, toConfig(child, building)]));
  config['states'] = shape.history === 'none' ? states : { ...states, h: { type: 'history', history: shape.history } };
  return config;
}

function toOn(recipe: NodeRecipe, source: string, building: Building): Record<string, Loose> {
  const names = [...EVENTS, ...RAISED];
  const on: Record<string, Loose> = {};
  for (const transition of recipe.on) {
    const event = names[transition.event % names.length] as string;
    on[event] = [...(on[event] ?? []), toTransition(transition, source, building)];
  }
  if (recipe.forbid !== null) on[EVENTS[recipe.forbid] as string] = undefined;
  return on;
}

function toTransition(recipe: TransitionRecipe, source: string, building: Building): Loose {
  const guards: Loose[] = [
    undefined,
    'even',
    { type: 'atMost', params: { max: 3 } },
    'paid',
    'both',
    not('even'),
    or(['even', { type: 'atMost', params: { max: 1 } }] as Loose),
    and([not('paid'), ({ context }: Args) => context.n < 5] as Loose),
    stateIn(`#${building.ids[(recipe.target ?? 0) % building.ids.length]}`.replace(/\.h$/, '')),
  ];
  const guard = guards[recipe.guard] as Loose;
  const wished = recipe.target === null ? undefined : building.ids[recipe.target % building.ids.length];
  // Not into the history of a state from inside of it: refused at registration.
  const target =
    wished?.endsWith('.h') === true && source.startsWith(wished.slice(0, -1)) ? wished.slice(0, -2) : wished;
  return {
    ...(guard === undefined ? {} : { guard }),
    ...(target === undefined ? {} : { target: `#${target}` }),
    ...(recipe.reenter ? { reenter: true } : {}),
    actions: recipe.actions.flatMap((action) => toActions(action, building)),
  };
}

function toActions(recipe: ActionRecipe, building: Building): Loose[] {
  switch (recipe.kind) {
    case 'assign':
      if (!recipe.inline) return [{ type: 'mark', params: { mark: recipe.mark } }];
      return [assign((args: Loose) => marked(args as Args, recipe.mark))];
    case 'raise':
      return [raise({ type: RAISED[recipe.event % 2] as string })];
    case 'later': {
      const id = recipe.id === null ? {} : { id: TIMERS[recipe.id] as string };
      return [raise({ type: RAISED[recipe.event % 2] as string }, { delay: DELAYS[recipe.delay] as number, ...id })];
    }
    case 'cancel':
      return [cancel(TIMERS[recipe.id] as string)];
    case 'emit':
      return [emit(({ context }: Loose) => ({ type: 'seen', n: context.n, mark: recipe.mark }))];
    case 'log':
      return [log(({ context }: Loose) => ({ n: context.n }), `label-${recipe.mark}`)];
    case 'parent':
      building.hasParent = true;
      return [sendParent({ type: 'UP', mark: recipe.mark })];
    case 'self':
      return [sendTo(({ self }: Loose) => self, { type: 'D', x: recipe.mark } as Loose)];
    case 'enqueue':
      return [enqueued(recipe)];
    default:
      return kidActions(recipe.kind, KIDS[recipe.kid] as string);
  }
}

function enqueued(recipe: Extract<ActionRecipe, { kind: 'enqueue' }>): Loose {
  return enqueueActions(({ enqueue, check, context }: Loose) => {
    if (check('even')) enqueue.raise({ type: RAISED[recipe.event % 2] as string });
    enqueue.assign((args: Args) => marked(args, recipe.mark));
    if (context.n % 3 === 0) enqueue.raise({ type: 'S' }, { delay: 15, id: TIMERS[recipe.event % 2] });
    enqueue({ type: 'mark', params: { mark: 1 } });
    enqueue.emit({ type: 'queued', mark: recipe.mark });
  });
}

function kidActions(kind: 'spawn' | 'respawn' | 'stop' | 'flash' | 'tell' | 'tellLater', kid: string): Loose[] {
  const live = (context: Context): boolean => context.kids.includes(kid);
  const add = assign({ kids: ({ context }: Loose) => [...context.kids.filter((other: string) => other !== kid), kid] });
  const remove = assign({ kids: ({ context }: Loose) => context.kids.filter((other: string) => other !== kid) });
  switch (kind) {
    case 'spawn':
      return [
        enqueueActions(({ enqueue, context }: Loose) => {
          if (live(context)) return;
          enqueue.spawnChild('job', { id: kid, input: { n: context.n } });
          enqueue(add);
        }),
      ];
    case 'respawn':
      return [
        stopChild(kid),
        spawnChild('job', { id: kid, input: ({ context }: Loose) => ({ again: context.n }) } as Loose),
        add,
      ];
    case 'stop':
      return [stopChild(kid), remove];
    case 'flash':
      return [
        stopChild(kid),
        spawnChild('job', { id: kid } as Loose),
        sendTo(kid, { type: 'PING' }),
        stopChild(kid),
        remove,
      ];
    case 'tell':
    case 'tellLater':
      return [
        enqueueActions(({ enqueue, context }: Loose) => {
          if (!live(context)) return;
          if (kind === 'tell') enqueue.sendTo(kid, { type: 'PING', n: context.n });
          else enqueue.sendTo(kid, { type: 'PING' }, { delay: 30, id: `ping-${kid}` });
        }),
      ];
  }
}
