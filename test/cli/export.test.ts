/** `pawl export` writes what the Stately editor opens, and --check finds drift. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { chargeTool, threeStepAgent } from '../runtime/agents.ts';
import { Provider } from '../runtime/provider.ts';
import { newProject } from './project.ts';

const agent = (version: number) => threeStepAgent({ charge: chargeTool(new Provider()), version });

test('writes both files for the newest version of each agent, and says the same the second time', async () => {
  const { folder, json } = newProject({ agents: [agent(1), agent(2)] });
  const first = await json(['export']);
  expect(first).toMatchObject({
    code: 0,
    document: {
      ok: true,
      files: [
        { file: 'stately/threeStep.machine.json', fate: 'written' },
        { file: 'stately/threeStep.machine.ts', fate: 'written' },
      ],
    },
  });
  const machine = JSON.parse(readFileSync(join(folder, 'stately/threeStep.machine.json'), 'utf8')) as object;
  expect(machine).toMatchObject({ id: 'threeStep', initial: 'idle' });
  expect(readFileSync(join(folder, 'stately/threeStep.machine.ts'), 'utf8')).toContain('threeStep version 2');
  expect((await json(['export'])).document).toMatchObject({ files: [{ fate: 'same' }, { fate: 'same' }] });
});

test('--check writes nothing and exits 1 for a file that is missing or differs', async () => {
  const { folder, json, run } = newProject({ agents: [agent(1)] });
  expect(await json(['export', '--check', '--out', 'charts'])).toMatchObject({
    code: 1,
    document: { ok: false, files: [{ fate: 'missing' }, { fate: 'missing' }] },
  });
  expect(existsSync(join(folder, 'charts'))).toBe(false);
  await run(['export', '--out', 'charts']);
  expect((await run(['export', '--check', '--out', 'charts'])).code).toBe(0);
  writeFileSync(join(folder, 'charts/threeStep.machine.ts'), '// edited by hand\n');
  expect(await json(['export', '--check', '--out', 'charts'])).toMatchObject({
    code: 1,
    document: { files: [{ fate: 'same' }, { file: 'charts/threeStep.machine.ts', fate: 'differs' }] },
  });
  expect((await run(['export', '--check', '--out', 'charts'])).out).toContain('differs  charts/threeStep.machine.ts');
});

test('a folder that cannot be written is a usage error', async () => {
  const { folder, json } = newProject({ agents: [agent(1)] });
  writeFileSync(join(folder, 'taken'), '');
  expect(await json(['export', '--out', 'taken'])).toMatchObject({
    code: 2,
    document: { error: { code: 'INVALID_ARGUMENT' } },
  });
});
