/** `pawl explain` is right about a run that was stopped at each boundary of DESIGN 3.1, and about one that needs a human. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CrashPoint } from '../../src/runtime/crash-points.ts';
import { chargeTool, lookupTool, threeStepAgent, type Recovery } from '../runtime/agents.ts';
import { Provider, type Mode } from '../runtime/provider.ts';
import { STORES } from '../runtime/stores.ts';
import { openWorld } from '../runtime/world.ts';
import { documentOf, pawl } from './command-line.ts';
import { explanation } from './contract.ts';

interface Stopped {
  explain(): Promise<ReturnType<typeof explanation.parse> & { code: number; text: string }>;
  operationId: string;
}

/** A run whose worker stopped for ever at a boundary. Its store is a file; nothing else knows of it. */
async function stoppedAt(point: CrashPoint, tool: string, recovery: Recovery = 'query'): Promise<Stopped> {
  const provider = new Provider();
  const agent = threeStepAgent({
    lookup: lookupTool(),
    charge: chargeTool(provider, { recovery }),
    mail: chargeTool(provider, { recovery, name: 'mail' }),
  });
  const world = openWorld(kindOf('sqlite'), [agent]);
  onTestFinished(() => world.close());
  const { pawl: runtime, frozen } = world.spawn({ freezeAt: { point, tool } });
  await runtime.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
  await runtime.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
  const { operationId = '' } = await frozen;
  return { explain: () => explain(world.test.path), operationId };
}

/** A run that needs a human because of its charge. */
async function escalated(recovery: Recovery, mode: Mode): Promise<Stopped> {
  const provider = new Provider();
  provider.modes.push(mode);
  const charge = chargeTool(provider, { recovery, timeoutMs: 50 });
  const world = openWorld(kindOf('sqlite'), [threeStepAgent({ charge })]);
  onTestFinished(() => world.close());
  const { pawl: runtime } = world.spawn();
  await runtime.start('threeStep', { runId: 'r1', input: { order: 'o1', amount: 10 } });
  await runtime.send('r1', { type: 'GO', amount: 10 }, { waitMs: 0 });
  const view = await runtime.wait('r1', { until: ({ status }) => status === 'needs_human', timeoutMs: 10_000 });
  return { explain: () => explain(world.test.path), operationId: view.openOperations[0]?.operationId ?? '' };
}

function kindOf(name: string) {
  const found = STORES.find((kind) => kind.name === name);
  if (!found) throw new Error(`no store ${name}`);
  return found;
}

async function explain(path: string | null) {
  const argv = ['explain', 'r1', '--store', `sqlite:${path}`];
  const said = await pawl([...argv, '--json']);
  const document = explanation.parse(documentOf(said));
  const { out, code } = await pawl(argv);
  expect(code).toBe(said.code);
  // The two were asked at different times.
  const flatten = (text: string): string => text.replace(/\s+/g, ' ').replace(/in \d+ (ms|s)|\d+ (ms|s) ago/g, 'T');
  for (const sentence of document.sentences) expect(flatten(out)).toContain(flatten(sentence));
  expect(out.split('\n').filter((line) => line.length > 100)).toEqual([]);
  return { ...document, code, text: document.sentences.join('\n') };
}

test('B0: a run that is not there has done nothing, and starting it is safe', async () => {
  const { explain: stored } = await stoppedAt('B1', 'lookup');
  await stored();
  const world = openWorld(kindOf('sqlite'), [threeStepAgent({ charge: chargeTool(new Provider()) })]);
  onTestFinished(() => world.close());
  await world.spawn().pawl.list();
  const { code, err } = await pawl(['explain', 'r0', '--store', `sqlite:${world.test.path}`]);
  expect(code).toBe(3);
  expect(err).toMatch(/nothing of it was stored.*Starting it, again or for the first time, with this id is safe/);
});

test('B1: a read without an answer is done again; there is nothing to be careful about', async () => {
  const { explain: ask } = await stoppedAt('B1', 'lookup');
  const { code, state, next, doNotRepeat, lastConfirmedEffect, text } = await ask();
  expect({ code, state, doNotRepeat, lastConfirmedEffect }).toEqual({
    code: 0,
    state: 'looking',
    doNotRepeat: [],
    lastConfirmedEffect: null,
  });
  expect(next).toMatchObject({ kind: 'execute', tool: 'lookup' });
  expect(text).toContain('No side effect of this run is confirmed');
  expect(text).toContain('changes nothing in the world');
  expect(text).toContain('No write of this run has happened or may have happened');
});

const CONFIRMED = {
  charge: 'No side effect of this run is confirmed',
  mail: 'The last confirmed side effect is charge',
};

describe.each([
  { tool: 'charge', state: 'charging', confirmed: undefined },
  { tool: 'mail', state: 'mailing', confirmed: 'charge' },
] as const)('stopped at the write $tool', ({ tool, state, confirmed }) => {
  describe.each(['B2', 'B3', 'B4', 'B5'] satisfies CrashPoint[])('%s: attempted, no receipt', (point) => {
    test('with a query, the provider is asked before anything is repeated', async () => {
      const { explain: ask, operationId } = await stoppedAt(point, tool, 'query');
      const said = await ask();
      expect(said).toMatchObject({ code: 0, state, next: { kind: 'reconcile', operationId, tool } });
      expect(said.doNotRepeat.at(-1)).toMatchObject({ operationId, tool, outcome: 'attempted' });
      expect(said.text).toContain('it may have happened');
      expect(said.text).toContain(`Ask the provider by operationId ${operationId}`);
      expect(said.text).toMatch(/do not repeat it before the provider has said that it did not/);
      expect(said.text).toContain(`Do not repeat ${tool} (operation ${operationId}) before its provider`);
      expect(said.text).not.toContain('needs a human');
      expect(said.lastConfirmedEffect?.tool).toBe(confirmed);
      expect(said.text).toContain(CONFIRMED[tool]);
    });

    test('without one but idempotent, it is performed again under the same id and no other', async () => {
      const { explain: ask, operationId } = await stoppedAt(point, tool, 'repeat');
      const said = await ask();
      expect(said).toMatchObject({ code: 0, state, next: { kind: 'execute', operationId, tool } });
      expect(said.text).toContain(`performs it again under ${operationId}`);
      expect(said.text).toContain('do not repeat it under any other id');
      expect(said.text).toContain(`Do not repeat ${tool} (operation ${operationId}) under another id`);
      expect(said.lastConfirmedEffect?.tool).toBe(confirmed);
      expect(said.text).toContain(CONFIRMED[tool]);
    });
  });

  test.each(['B3', 'B4', 'B5'] satisfies CrashPoint[])(
    '%s with neither: nobody repeats it, a person finds out',
    async (point) => {
      const { explain: ask, operationId } = await stoppedAt(point, tool, 'neither');
      const said = await ask();
      expect(said).toMatchObject({ state, next: { kind: 'await_human', operationId, tool } });
      expect(said.text).toContain('can neither be asked nor given it twice');
      expect(said.text).toContain(
        `pawl resolve r1 ${operationId} --as succeeded --output JSON --by WHO --evidence TEXT`,
      );
      expect(said.text).not.toMatch(/performs it again/);
    },
  );

  test('B6: its receipt is stored; it is confirmed, the next step only reduces it', async () => {
    const { explain: ask, operationId } = await stoppedAt('B6', tool);
    const said = await ask();
    expect(said).toMatchObject({
      code: 0,
      state,
      next: { kind: 'reduce', operationId, tool },
      lastConfirmedEffect: { operationId, tool, outcome: 'succeeded' },
    });
    expect(said.doNotRepeat.at(-1)).toMatchObject({ operationId, outcome: 'succeeded' });
    expect(said.text).toContain(
      'is stored and not yet reduced: a worker reduces it; the tool is not called for it again',
    );
    expect(said.text).toContain(`Do not repeat ${tool} (operation ${operationId}): it happened`);
    expect(said.text).not.toContain('may have happened');
  });
});

describe.each(['B7', 'B8'] satisfies CrashPoint[])('%s: reduced', (point) => {
  test('the charge is confirmed, and the mail is what has to be settled', async () => {
    const { explain: ask, operationId } = await stoppedAt(point, 'charge');
    expect(await ask()).toMatchObject({
      code: 0,
      state: 'mailing',
      lastConfirmedEffect: { operationId, tool: 'charge', outcome: 'succeeded' },
      next: { kind: 'reconcile', tool: 'mail' },
      doNotRepeat: [
        { operationId, outcome: 'succeeded' },
        { tool: 'mail', outcome: 'attempted' },
      ],
    });
  });

  test('the mail is confirmed, and nothing is left', async () => {
    const { explain: ask, operationId } = await stoppedAt(point, 'mail');
    const said = await ask();
    expect(said).toMatchObject({ code: 0, status: 'done', next: { kind: 'none' }, waitingFor: [] });
    expect(said.lastConfirmedEffect).toMatchObject({ operationId, tool: 'mail' });
    expect(said.text).toContain('Nothing is left to be done');
    expect(said.text).toContain(`Do not repeat mail (operation ${operationId}): it happened`);
  });
});

test('the worker that holds the run is named while its lease lasts, and is gone after it', async () => {
  const { explain: ask } = await stoppedAt('B4', 'charge');
  expect((await ask()).text).toMatch(/Worker \S+ holds it until .*any other takes it over then/);
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect((await ask()).text).toMatch(/No worker holds it; the lease of \S+ ran out at .*pawl work/);
});

describe('needs a human', () => {
  test('an outcome that nobody can know: exit 6, resolve, and no release', async () => {
    const { explain: ask, operationId } = await escalated('neither', 'acceptThenReset');
    const said = await ask();
    expect(said).toMatchObject({
      code: 6,
      status: 'needs_human',
      state: 'charging',
      next: { kind: 'await_human', operationId },
    });
    expect(said.doNotRepeat).toMatchObject([{ operationId, outcome: 'unknown' }]);
    expect(said.text).toContain(`pawl resolve r1 ${operationId} --as succeeded --output JSON --by WHO --evidence TEXT`);
    expect(said.text).not.toContain('pawl release');
    expect(said.text).toContain('It waits for a person (unknown_outcome).');
  });
});
