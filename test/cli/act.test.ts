/** start, work, send, cancel, resolve, release and verify: what they do, answer and exit with. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { z } from 'zod';
import { defineAgent } from '../../src/machines/define-agent.ts';
import { defineEvents, type EventsOf } from '../../src/machines/define-events.ts';
import type { Store } from '../../src/persistence/store.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { chargeTool, threeStepAgent, type Recovery } from '../runtime/agents.ts';
import { Provider } from '../runtime/provider.ts';
import { startCommandLine } from './command-line.ts';
import { explanation, runView, verdict, verification } from './contract.ts';
import { newProject } from './project.ts';

const INPUT = '{"order":"o1","amount":10}';

function chargeProject(recovery: Recovery = 'query', provider = new Provider()) {
  const agent = threeStepAgent({ charge: chargeTool(provider, { recovery, timeoutMs: 100 }) });
  return { provider, project: newProject({ agents: [agent] }) };
}

describe('start', () => {
  test('stores a run and prints its view; the same again gives the same run', async () => {
    const { project } = chargeProject();
    const argv = ['start', 'threeStep', '--id', 'r1', '--input', INPUT, '--label', 'team=a', '--by', 'ann'];
    const first = await project.json(argv);
    expect(first.code).toBe(0);
    expect(runView.parse(first.document)).toMatchObject({ runId: 'r1', state: 'idle', labels: { team: 'a' } });
    const again = await project.json(argv);
    expect([again.code, again.document]).toEqual([0, first.document]);
  });

  test('takes its input from a file or from standard input', async () => {
    const { project } = chargeProject();
    writeFileSync(join(project.folder, 'input.json'), INPUT);
    const file = await project.json(['start', 'threeStep', '--id', 'r1', '--input', '@input.json']);
    expect(file.document).toMatchObject({ input: { order: 'o1' } });
    const piped = await project.run(['start', 'threeStep', '--id', 'r2', '--input', '@-'], { stdin: INPUT });
    expect(piped).toMatchObject({
      code: 0,
      out: expect.stringContaining('idle'),
      err: expect.stringContaining('work'),
    });
  });

  test('refuses another input under the same id (4), input that does not fit (2) and an unknown agent (3)', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    const start = (agent: string, input: string) => project.json(['start', agent, '--id', 'r1', '--input', input]);
    expect(await start('threeStep', '{"order":"o2","amount":10}')).toMatchObject({
      code: 4,
      document: { error: { code: 'RUN_EXISTS' } },
    });
    expect(await start('threeStep', '{"order":7}')).toMatchObject({
      code: 2,
      document: { error: { code: 'INVALID_INPUT', message: expect.stringContaining('input.order') } },
    });
    expect(await start('refunds', INPUT)).toMatchObject({
      code: 3,
      document: { error: { code: 'AGENT_UNKNOWN', message: expect.stringContaining('threeStep') } },
    });
  });

  test('--wait works the run here: until it is idle, then until it is final', async () => {
    const { project, provider } = chargeProject();
    const argv = ['start', 'threeStep', '--id', 'r1', '--input', INPUT, '--wait'];
    expect(await project.json(argv)).toMatchObject({ code: 0, document: { status: 'waiting', state: 'idle' } });
    const sent = await project.json(['send', 'r1', 'GO', '{"amount":10}', '--wait-ms', '0']);
    expect([sent.code, verdict.parse(sent.document).verdict]).toEqual([0, 'accepted']);
    expect(await project.json(argv)).toMatchObject({ code: 0, document: { status: 'done', state: 'done' } });
    expect(provider.effectsOf('charge:o1')).toBe(1);
  });

  test('--wait exits 6 when the run needs a human, 5 when it takes longer than --timeout-ms', async () => {
    const { project, provider } = chargeProject('neither');
    provider.modes.push('error');
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    await project.run(['send', 'r1', 'GO', '{"amount":10}', '--wait-ms', '0']);
    const argv = ['start', 'threeStep', '--id', 'r1', '--input', INPUT, '--wait'];
    expect(await project.json(argv)).toMatchObject({ code: 6, document: { status: 'needs_human' } });

    const slow = chargeProject('query');
    slow.provider.queries.push(...Array<'down'>(500).fill('down'));
    slow.provider.modes.push('error');
    await slow.project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    await slow.project.run(['send', 'r1', 'GO', '{"amount":10}', '--wait-ms', '0']);
    expect(await slow.project.json([...argv, '--timeout-ms', '200'])).toMatchObject({
      code: 5,
      document: { error: { code: 'WAIT_TIMEOUT', details: { runId: 'r1', status: 'running' } } },
    });
  });
});

describe('send', () => {
  test('exits 0 for every verdict but refused, which is 4 and says what is allowed', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    project.work();
    const send = async (...argv: string[]) => {
      const said = await project.json(['send', 'r1', ...argv]);
      return { code: said.code, ...verdict.parse(said.document) };
    };
    expect(await send('NOPE')).toMatchObject({ code: 4, verdict: 'refused', reason: 'unknown_event' });
    expect(await send('GO', '{"amount":-1}')).toMatchObject({ code: 4, reason: 'invalid_payload' });
    expect(await send('GO', '{"amount":5000}')).toMatchObject({ code: 4, reason: 'guard_rejected', state: 'idle' });
    expect(await send('GO', '{"amount":10}', '--expect-sequence', '7')).toMatchObject({
      code: 4,
      reason: 'stale_sequence',
    });
    expect(await send('NOISE')).toMatchObject({ code: 0, verdict: 'dropped' });
    expect(await send('LATER', '{"note":"x"}')).toMatchObject({ code: 0, verdict: 'deferred' });
    const go = ['GO', '{"amount":10}', '--event-id', 'e1', '--expect-sequence', '1', '--by', 'ann'];
    expect(await send(...go)).toMatchObject({ code: 0, verdict: 'applied', sequence: 2 });
    expect(await send(...go)).toMatchObject({ code: 0, verdict: 'duplicate', sequence: 2 });
    const text = await project.run(['send', 'r1', 'NOPE']);
    expect(text).toMatchObject({ code: 4, out: expect.stringMatching(/^refused \(unknown_event\) at sequence \d+/) });
  });
});

describe('cancel, release and resolve', () => {
  test('cancel ends a run without a config; a run that has ended refuses it', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    project.work();
    const elsewhere = newProject();
    const argv = ['cancel', 'r1', '--by', 'ann', '--reason', 'test', '--store', `sqlite:${project.path}`];
    const first = await elsewhere.json(argv);
    expect([first.code, verdict.parse(first.document)]).toMatchObject([0, { verdict: 'applied' }]);
    expect(await elsewhere.json(argv)).toMatchObject({
      code: 4,
      document: { verdict: 'refused', reason: 'run_final' },
    });
  });

  test('an unknown write is resolved by a person, and the run goes on with the output', async () => {
    const { project, provider } = chargeProject('neither');
    provider.modes.push('acceptThenReset');
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    const worker = project.work();
    await project.run(['send', 'r1', 'GO', '{"amount":10}']);
    const view = await worker.wait('r1', { until: ({ status }) => status === 'needs_human' });
    const operationId = view.openOperations[0]?.operationId ?? '';
    const decided = ['--by', 'ann', '--evidence', 'seen'];
    const resolve = (...argv: string[]) => project.json(['resolve', 'r1', ...argv, ...decided]);

    expect(await resolve('op_none', '--as', 'failed')).toMatchObject({
      code: 3,
      document: { error: { code: 'OPERATION_NOT_FOUND' } },
    });
    expect(await resolve(operationId, '--as', 'succeeded', '--output', '{"id":7}')).toMatchObject({
      code: 4,
      document: { error: { code: 'TOOL_OUTPUT_INVALID' } },
    });
    expect(await project.json(['release', 'r1', '--by', 'ann', '--reason', 'try'])).toMatchObject({ code: 0 });
    expect((await project.run(['explain', 'r1'])).code).toBe(6);
    const done = await resolve(operationId, '--as', 'succeeded', '--output', '{"id":"refund-o1"}');
    expect([done.code, verdict.parse(done.document)]).toMatchObject([0, { verdict: 'applied' }]);
    await worker.wait('r1');
    expect(await project.json(['show', 'r1'])).toMatchObject({
      document: { status: 'done', output: { charge: 'refund-o1' } },
    });
    expect(provider.effectsOf('charge:o1')).toBe(1);
    expect(await resolve(operationId, '--as', 'failed')).toMatchObject({
      code: 4,
      document: { error: { code: 'OPERATION_SETTLED' } },
    });
    expect((await project.run(['explain', 'r1'])).code).toBe(0);
  });

  test('release of a run that was not stopped is refused', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    project.work();
    expect(await project.json(['release', 'r1', '--by', 'ann', '--reason', 'x'])).toMatchObject({
      code: 4,
      document: { verdict: 'refused' },
    });
  });

  test('a step that threw is explained with its release, which reduces it again', async () => {
    const broken = { now: true };
    const project = newProject({ agents: [throwingAgent(broken)] });
    await project.run(['start', 'throwing', '--id', 'r1', '--input', INPUT]);
    const worker = project.work();
    await worker.wait('r1', { until: ({ status }) => status === 'needs_human' });
    const said = await project.json(['explain', 'r1']);
    const { sentences, next } = explanation.parse(said.document);
    expect([said.code, next.kind]).toEqual([6, 'await_human']);
    expect(sentences.join('\n')).toContain('pawl release r1 --by WHO --reason TEXT');
    expect(sentences.join('\n')).toContain('the mapper is broken');
    broken.now = false;
    expect(await project.json(['release', 'r1', '--by', 'ann', '--reason', 'fixed'])).toMatchObject({ code: 0 });
    expect(await worker.wait('r1')).toMatchObject({ status: 'done' });
  });
});

/** Its completion throws while `broken.now`. */
function throwingAgent(broken: { now: boolean }) {
  const events = defineEvents({ NEVER: z.object({}) });
  const charge = chargeTool(new Provider());
  const machine = setup({
    types: {} as {
      context: { id: string };
      input: { order: string; amount: number };
      events: EventsOf<typeof events>;
    },
    actors: { charge },
    actions: {
      keep: assign(() => {
        if (broken.now) throw new Error('the mapper is broken');
        return { id: 'kept' };
      }),
    },
  }).createMachine({
    id: 'throwing',
    context: { id: '' },
    initial: 'charging',
    states: {
      charging: {
        invoke: { src: 'charge', input: { order: 'o1', amount: 1 }, onDone: { target: 'done', actions: 'keep' } },
      },
      done: { type: 'final' },
    },
  });
  return defineAgent({
    name: 'throwing',
    version: 1,
    machine,
    events,
    input: z.object({ order: z.string(), amount: z.int() }),
  });
}

describe('work', () => {
  test('works due runs until the first signal, then drains and exits 0', async () => {
    const { project, provider } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    await project.run(['send', 'r1', 'GO', '{"amount":10}', '--wait-ms', '0']);
    const worker = startCommandLine(['work', '--concurrency', '2', '--json'], { cwd: project.folder });
    const view = await project.run(['history', 'r1', '--follow']);
    expect(view.out).toContain('finished');
    worker.signal('SIGTERM');
    const said = await worker.said;
    expect([said.code, JSON.parse(said.out)]).toMatchObject([0, { signal: 'SIGTERM', workerId: expect.any(String) }]);
    expect(said.err).toMatch(/working .*agents=.?threeStep@1.*\n.*draining.*\n.*drained/s);
    expect([worker.exits, provider.effectsOf('charge:o1')]).toEqual([[], 1]);
  });

  test('the second signal ends it at once, with the code of that signal', async () => {
    const { project, provider } = chargeProject();
    provider.modes.push('hang');
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    await project.run(['send', 'r1', 'GO', '{"amount":10}', '--wait-ms', '0']);
    const worker = startCommandLine(['work'], { cwd: project.folder });
    while (provider.requests === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    worker.signal('SIGTERM');
    expect(worker.exits).toEqual([]);
    worker.signal('SIGINT');
    expect(worker.exits).toEqual([130]);
    await worker.said;
  });

  test('says at once that a machine changed under its version', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    const provider = new Provider();
    const changed = threeStepAgent({ charge: chargeTool(provider), mail: chargeTool(provider, { name: 'mail' }) });
    const other = newProject({ agents: [changed] });
    expect(await other.json(['work', '--store', `sqlite:${project.path}`])).toMatchObject({
      code: 2,
      document: { error: { code: 'STRUCTURE_CHANGED' } },
    });
  });
});

/** A store whose ledger lacks one transition and whose bytes look whole. */
function withoutTransition(store: Store, damaged: string, sequence: number): Store {
  const changed: Partial<Store> = {
    async *read(runId, from) {
      for await (const entry of store.read(runId, from)) {
        if (runId !== damaged || entry.sequence !== sequence || entry.kind !== 'transitioned') yield entry;
      }
    },
    audit: async () => [],
    close: async () => {},
  };
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(changed, name) ?? Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('verify', () => {
  test('exits 0 when every run holds, and 1 naming run and sequence when one does not', async () => {
    const { project } = chargeProject();
    for (const id of ['r1', 'r2']) {
      await project.run(['start', 'threeStep', '--id', id, '--input', `{"order":"${id}","amount":1}`]);
      await project.run(['send', id, 'GO', '{"amount":10}', '--wait-ms', '0']);
      await project.run(['start', 'threeStep', '--id', id, '--input', `{"order":"${id}","amount":1}`, '--wait']);
    }
    const good = await project.json(['verify', '--all']);
    expect([good.code, verification.parse(good.document)]).toMatchObject([0, { ok: true, runs: [{}, {}] }]);
    expect(await project.run(['verify', 'r1', 'r2'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('2 of 2 ok'),
    });

    const store = sqliteStore({ path: project.path });
    const lost = withoutTransition(store, 'r2', 3);
    const damaged = newProject({
      agents: [threeStepAgent({ charge: chargeTool(new Provider()) })],
      store: lost,
    });
    const bad = await damaged.json(['verify', '--all']);
    const { ok, runs } = verification.parse(bad.document);
    expect([bad.code, ok]).toEqual([1, false]);
    expect(runs.find(({ runId }) => runId === 'r2')).toMatchObject({ ok: false, divergedAt: { sequence: 4 } });
    expect(runs.find(({ runId }) => runId === 'r1')).toMatchObject({ ok: true });
    await store.close();
  });

  test('a run of an agent that the config lacks is not ok, and hides no other', async () => {
    const { project } = chargeProject();
    await project.run(['start', 'threeStep', '--id', 'r1', '--input', INPUT]);
    const other = newProject({ agents: [throwingAgent({ now: false })] });
    const said = await other.json(['verify', '--all', '--store', `sqlite:${project.path}`]);
    expect([said.code, verification.parse(said.document).ok]).toEqual([1, false]);
    expect(said.document).toMatchObject({ runs: [{ runId: 'r1', ok: false, error: { code: 'AGENT_UNKNOWN' } }] });
  });
});
