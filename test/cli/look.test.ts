/** ls, show and history from the store alone: no config, no agent, nothing created. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { chargeTool, threeStepAgent } from '../runtime/agents.ts';
import { Provider } from '../runtime/provider.ts';
import { startCommandLine } from './command-line.ts';
import { ledgerEntry, runList, runView } from './contract.ts';
import { newProject, type Project } from './project.ts';

/** Three runs: r1 done, r2 waiting (team=a), r3 needs a human. */
async function threeRuns(): Promise<{ project: Project; store: string }> {
  const provider = new Provider();
  const agent = threeStepAgent({ charge: chargeTool(provider, { recovery: 'neither' }) });
  const project = newProject({ agents: [agent] });
  const start = (id: string, ...more: string[]) =>
    project.run(['start', 'threeStep', '--id', id, '--input', `{"order":"${id}","amount":1}`, ...more]);
  const go = (id: string) => project.run(['send', id, 'GO', '{"amount":1}', '--wait-ms', '0']);
  await start('r1');
  await go('r1');
  await start('r1', '--wait');
  await start('r2', '--label', 'team=a', '--label', 'kind=x');
  await start('r3');
  provider.modes.push('error');
  await go('r3');
  await start('r3', '--wait');
  return { project: newProject(), store: `sqlite:${project.path}` };
}

describe('three runs in a store', () => {
  test('are listed, filtered, paged and shown without a config', async () => {
    const { project, store } = await threeRuns();
    const ls = async (...argv: string[]) => {
      const said = await project.json(['ls', '--store', store, ...argv]);
      const { runs, cursor } = runList.parse(said.document);
      return { code: said.code, ids: runs.map(({ runId }) => runId), cursor };
    };
    expect(await ls()).toEqual({ code: 0, ids: ['r3', 'r2', 'r1'], cursor: null });
    expect((await ls('--status', 'needs_human')).ids).toEqual(['r3']);
    expect((await ls('--blocked')).ids).toEqual(['r3']);
    expect((await ls('--state', 'idle')).ids).toEqual(['r2']);
    expect((await ls('--agent', 'threeStep', '--state', 'done')).ids).toEqual(['r1']);
    expect((await ls('--label', 'team=a', '--label', 'kind=x')).ids).toEqual(['r2']);
    expect((await ls('--label', 'team=b')).ids).toEqual([]);
    const first = await ls('--limit', '2');
    expect(first.ids).toEqual(['r3', 'r2']);
    expect(await ls('--limit', '2', '--cursor', first.cursor ?? '')).toEqual({ code: 0, ids: ['r1'], cursor: null });

    const shown = await project.json(['show', 'r3', '--store', store]);
    expect([shown.code, runView.parse(shown.document)]).toMatchObject([0, { runId: 'r3', status: 'needs_human' }]);
    expect(readdirSync(project.folder)).toEqual([]);
  });

  test('make an aligned table that fits 100 columns, plain off a terminal and coloured on one', async () => {
    const { project, store } = await threeRuns();
    const { out } = await project.run(['ls', '--store', store]);
    const lines = out.trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^RUN +AGENT +STATUS +STATE +SEQ +UPDATED +NEXT$/);
    const at = lines[0]?.indexOf('STATUS') ?? 0;
    expect(lines.slice(1).map((line) => line.slice(at).split(/ {2}/)[0])).toEqual(['needs a human', 'waiting', 'done']);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
    expect(out).not.toContain('\u001b');
    const coloured = await project.run(['ls', '--store', store], { isTerminal: true });
    expect(coloured.out).toContain('\u001b[31mneeds a human');
    const narrow = await project.run(['ls', '--store', store], {
      isTerminal: true,
      env: { NO_COLOR: '1' },
      columns: 70,
    });
    for (const line of narrow.out.trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(70);
  });

  test('are shown in full for people as well', async () => {
    const { project, store } = await threeRuns();
    const { out } = await project.run(['show', 'r3', '--store', store]);
    for (const needle of ['r3', 'needs a human', 'threeStep@1', 'charging', 'operation', 'charge', '{"order":"r3"']) {
      expect(out).toContain(needle);
    }
  });
});

describe('history', () => {
  test('is one entry a line, the whole ledger or from a sequence', async () => {
    const { project, store } = await threeRuns();
    const { code, out } = await project.run(['history', 'r1', '--json', '--store', store]);
    const entries = out
      .trimEnd()
      .split('\n')
      .map((line) => ledgerEntry.parse(JSON.parse(line)));
    expect(code).toBe(0);
    expect(entries.map(({ index }) => index)).toEqual(entries.map((_, index) => index));
    expect(entries.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['started', 'transitioned', 'finished']));
    const later = await project.run(['history', 'r1', '--json', '--from', '2', '--store', store]);
    expect(later.out.split('\n').length).toBeLessThan(out.split('\n').length);
    const text = await project.run(['history', 'r1', '--store', store]);
    expect(text.out.trimEnd().split('\n')).toHaveLength(entries.length);
    expect(text.out).toMatch(/transitioned +GO: idle → looking/);
    const narrow = await project.run(['history', 'r1', '--store', store], { isTerminal: true, env: { NO_COLOR: '1' } });
    for (const line of narrow.out.trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(100);
  });

  test('--follow prints what comes and ends with the run, or with Ctrl-C', async () => {
    const { store } = await threeRuns();
    const path = store.slice('sqlite:'.length);
    const agent = threeStepAgent({ charge: chargeTool(new Provider(), { recovery: 'neither' }) });
    const followed = startCommandLine(['history', 'r2', '--follow', '--json', '--store', store]);
    const interrupted = startCommandLine(['history', 'r3', '--follow', '--store', store]);
    const runtime = createRuntime({ agents: [agent], store: sqliteStore({ path }), sweepMs: 20 });
    runtime.work();
    while (followed.out === '' || interrupted.out === '') await new Promise((resolve) => setTimeout(resolve, 5));
    expect(followed.out).not.toContain('finished');
    await runtime.send('r2', { type: 'GO', amount: 1 });
    const { code, out } = await followed.said;
    expect([code, JSON.parse(out.trimEnd().split('\n').at(-1) ?? '')]).toMatchObject([0, { kind: 'finished' }]);
    interrupted.signal('SIGINT');
    expect((await interrupted.said).code).toBe(0);
    await runtime.close();
  });
});

test('stored texts cannot steer the terminal', async () => {
  const project = newProject({ agents: [threeStepAgent({ charge: chargeTool(new Provider()) })] });
  const input = JSON.stringify({ order: 'a\u001b[2J\u0007b', amount: 1 });
  await project.run([
    'start',
    'threeStep',
    '--id',
    'r1',
    '--input',
    input,
    '--label',
    'x=\u001b[31m',
    '--by',
    '\u001b]0;x\u0007',
  ]);
  for (const command of ['show', 'history', 'explain']) {
    // oxlint-disable-next-line no-control-regex
    expect((await project.run([command, 'r1'])).out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  }
});
