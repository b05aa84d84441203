import { resolve } from 'node:path';
import { runInThisContext } from 'node:vm';
import {
  and,
  assign,
  cancel,
  createMachine,
  emit,
  enqueueActions,
  log,
  not,
  raise,
  sendTo,
  setup,
  spawnChild,
  stateIn,
  stopChild,
  type AnyStateMachine,
} from 'xstate';
import fc from 'fast-check';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { toStatelyJson } from '../../src/machines/export.ts';
import { toMachineSource } from '../../src/machines/machine-source.ts';
import { allNodes } from '../../src/machines/nodes.ts';
import { findNonJson } from '../../src/json.ts';
import type { Json } from '../../src/records.ts';
import { buildMachine } from './equivalence/build-machine.ts';
import { machineRecipe } from './equivalence/recipe.ts';
import { fakeTool } from './machines.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- JSON stands in for a typed config
type Loose = any;

const everything = setup({
  types: {} as {
    context: { n: number };
    events: { type: 'GO'; n: number } | { type: 'STOP' } | { type: 'feed.any' } | { type: 'xstate.done.actor.kid' };
  },
  actors: { job: fakeTool('job'), other: fakeTool('other') },
  guards: { big: ({ context }, params: { min: number }) => context.n > params.min, small: () => true },
  actions: { add: assign({ n: (_, params: { by: number }) => params.by }), plain: assign({ n: 0 }) },
  delays: { soon: 250, dynamic: ({ context }) => context.n },
}).createMachine({
  id: 'every.thing',
  version: '3',
  description: 'It\'s a "chart"\nof everything',
  context: { n: 1 },
  initial: 'idle',
  entry: ['plain', { type: 'add', params: { by: 2 } }, { type: 'add', params: ({ context }) => ({ by: context.n }) }],
  on: { 'feed.*': { actions: log('fed', 'label') }, 'xstate.done.actor.kid': { actions: cancel('later') } },
  states: {
    idle: {
      tags: ['waiting'],
      meta: { pawl: { tokens: 5 } },
      on: {
        GO: [
          { guard: 'small', target: 'work' },
          { guard: { type: 'big', params: { min: 3 } }, target: '#the-end', description: 'enough' },
          { guard: and(['small', not(stateIn('#every\\.thing.work'))]), target: '.inner' },
          { guard: ({ context }) => context.n > 4, target: ['par.one.b', 'par.two.d'] },
        ],
        STOP: undefined,
        'feed.*': {},
      },
      initial: 'inner',
      states: { inner: { always: { guard: 'small', actions: raise({ type: 'STOP' }) } } },
    },
    work: {
      entry: [
        spawnChild('other', { id: 'kid', input: { deep: [1, null] } }),
        sendTo('kid', { type: 'GO', n: 1 }),
        emit({ type: 'seen' } as never),
      ],
      exit: [stopChild('kid'), enqueueActions(() => {})],
      invoke: [
        {
          src: 'job',
          id: 'job',
          input: { fixed: 1 },
          onDone: { target: 'par', reenter: true },
          onError: [{ guard: 'small', target: 'idle' }, { target: 'end' }],
        },
        { src: 'other', input: ({ context }: Loose) => context.n },
      ],
      after: {
        1000: 'idle',
        soon: { target: 'work', reenter: true, actions: raise({ type: 'STOP' }, { delay: 'dynamic', id: 'later' }) },
        dynamic: [{ guard: 'small', target: 'end' }],
      },
      onDone: { target: 'idle' },
      initial: 'x',
      states: { x: {}, y: { type: 'final', output: { done: true } } },
    },
    par: {
      type: 'parallel',
      onDone: 'end',
      states: {
        one: { initial: 'a', states: { a: {}, b: {}, h: { type: 'history', target: 'b' } } },
        two: { initial: { target: 'c' }, states: { c: {}, d: { type: 'final' }, 'with space': {} } },
        deep: { type: 'history', history: 'deep' },
      },
    },
    end: { id: 'the-end', type: 'final' },
  },
  output: () => ({ ok: true }),
});

/** Nodes and edges, without what JSON cannot hold. */
function adjacency(machine: AnyStateMachine): Json {
  return allNodes(machine.root).map((node) => ({
    id: node.id,
    type: node.type,
    // `history: 'shallow'` is written out; what XState gives is false.
    history: node.history === 'deep',
    initial: node.type === 'compound' ? node.initial.target.map(({ id }) => id) : null,
    tags: [...node.tags],
    invoke: node.invoke.map(({ id, src }) => [id, src]),
    edges: [...node.transitions.values(), node.always ?? []]
      .flat()
      .map(({ eventType, target, reenter, guard, actions }) => ({
        event: eventType,
        target: target?.map(({ id }) => id) ?? null,
        reenter,
        guarded: guard !== undefined,
        actions: actions.length,
      })),
    actions: [node.entry.length, node.exit.length],
  })) as unknown as Json;
}

test('the JSON is strict, without shorthand, and gives a machine with the same adjacency', () => {
  const json = toStatelyJson(everything);
  expect(findNonJson(json)).toBeNull();
  expect(adjacency(createMachine(JSON.parse(JSON.stringify(json)) as Loose))).toEqual(adjacency(everything));
  for (const transition of transitionsIn(json)) {
    expect(
      Object.keys(transition).every((key) =>
        ['target', 'guard', 'actions', 'reenter', 'description', 'meta'].includes(key),
      ),
    ).toBe(true);
    expect(transition.target === undefined || Array.isArray(transition.target)).toBe(true);
    expect(transition.guard === undefined || typeof transition.guard.type === 'string').toBe(true);
  }
});

function transitionsIn(node: Loose): Loose[] {
  const own = [
    ...Object.values(node.on ?? {}),
    ...Object.values(node.after ?? {}),
    node.always ?? [],
    node.onDone ?? [],
  ];
  const invoked = (node.invoke ?? []).flatMap((invoke: Loose) => [...(invoke.onDone ?? []), ...(invoke.onError ?? [])]);
  return [...own.flat(), ...invoked, ...Object.values(node.states ?? {}).flatMap(transitionsIn)];
}

test('random machines keep their adjacency too', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  for (const recipe of fc.sample(machineRecipe, { numRuns: 40, seed })) {
    const { machine } = buildMachine(recipe);
    const json = toStatelyJson(machine);
    expect(findNonJson(json), `seed ${seed}`).toBeNull();
    expect(adjacency(createMachine(JSON.parse(JSON.stringify(json)) as Loose)), `seed ${seed}`).toEqual(
      adjacency(machine),
    );
  }
});

test('names say what functions did', () => {
  const json = toStatelyJson(everything) as Loose;
  const guards = json.states.idle.on.GO.map(({ guard }: Loose) => guard);
  expect(guards).toEqual([
    { type: 'small' },
    { type: 'big', params: { min: 3 } },
    { type: 'and(small, not(stateIn(#every\\.thing.work)))' },
    { type: 'inline guard' },
  ]);
  expect(json.states.work.entry).toEqual([
    { type: 'xstate.spawnChild', params: { src: 'other', id: 'kid', input: { deep: [1, null] } } },
    { type: 'xstate.sendTo', params: { actorRef: 'kid', event: { type: 'GO', n: 1 } } },
    { type: 'xstate.emit', params: { event: { type: 'seen' } } },
  ]);
  expect(json.entry).toEqual([{ type: 'plain' }, { type: 'add', params: { by: 2 } }, { type: 'add' }]);
  expect(json.states.idle.on.STOP).toEqual([{}]);
});

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  skipLibCheck: true,
  noEmit: true,
  types: [],
};
const FILE = resolve('test/machines/exported-chart.ts');
const parsed = new Map<string, ts.SourceFile | undefined>();
let program: ts.Program | undefined;

/** What the compiler says of a file that only exists here. */
function problemsOf(source: string): string[] {
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, target, ...rest) => {
    if (name === FILE) return ts.createSourceFile(name, source, target);
    if (!parsed.has(name)) parsed.set(name, getSourceFile.call(host, name, target, ...rest));
    return parsed.get(name);
  };
  host.fileExists = (name) => name === FILE || fileExists.call(host, name);
  host.readFile = (name) => (name === FILE ? source : readFile.call(host, name));
  program = ts.createProgram([FILE], OPTIONS, host, program);
  const file = program.getSourceFile(FILE);
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n'),
  );
}

function run(source: string): AnyStateMachine {
  const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 };
  const { outputText } = ts.transpileModule(source, { compilerOptions });
  const load = runInThisContext(`(function (exports, require) {${outputText}\n})`) as (...args: unknown[]) => void;
  const exported: { machine?: AnyStateMachine } = {};
  load(exported, () => ({ setup, fromPromise: () => fakeTool('stub') }));
  return exported.machine as AnyStateMachine;
}

test(
  'the source type-checks alone under strict, imports XState only, and is the same chart',
  { timeout: 60_000 },
  () => {
    const source = toMachineSource(everything, 'every thing\nversion 3');
    expect(source.match(/^import .*$/gm)).toEqual(["import { fromPromise, setup } from 'xstate';"]);
    expect(source).toMatch(/export const machine = setup\(\{[^]*\}\)\.createMachine\(\{/);
    expect(source).not.toContain('\t');
    const machine = run(source);
    expect(problemsOf(source)).toEqual([]);
    expect(adjacency(machine)).toEqual(adjacency(everything));
  },
);

test('a source that is wrong is found so by that check', { timeout: 60_000 }, () => {
  const source = toMachineSource(everything, 'x').replace("type: 'big'", "type: 'biggest'");
  expect(problemsOf(source).join()).toContain('biggest');
});

test('the smallest machine', () => {
  const tiny = createMachine({ id: 'tiny' });
  expect(toStatelyJson(tiny)).toEqual({ id: 'tiny' });
  expect(problemsOf(toMachineSource(tiny, 'tiny'))).toEqual([]);
});
