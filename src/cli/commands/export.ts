/** `pawl export`: each agent's chart as JSON and TypeScript that the Stately editor opens. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { messageOf, PawlError } from '../../errors.ts';
import type { AgentDefinition } from '../../machines/define-agent.ts';
import { toStatelyJson } from '../../machines/export.ts';
import { toMachineSource } from '../../machines/machine-source.ts';
import { answer } from '../answer.ts';
import type { Command, Invocation } from '../command.ts';
import { findConfig, loadConfig } from '../config.ts';
import type { Paint } from '../paint.ts';

type Fate = 'same' | 'written' | 'differs' | 'missing';

interface ExportedFile {
  file: string;
  fate: Fate;
}

export const exportCommand: Command = {
  name: 'export',
  group: 'Operate',
  summary: 'write each agent’s machine for the Stately editor',
  arguments: [],
  options: {
    out: { value: 'DIR', help: 'where to write; default stately' },
    check: { help: 'write nothing; exit 1 when a file is missing or differs from what would be written' },
  },
  about: [
    'Writes AGENT.machine.json and AGENT.machine.ts for the newest version of each agent of the config. Keep them in the repository and run --check in CI.',
  ],
  examples: ['pawl export', 'pawl export --check'],
  run: exportMachines,
};

async function exportMachines(invocation: Invocation): Promise<number> {
  const { flags, io } = invocation;
  const path = findConfig(io, flags.text('config'));
  if (path === null) {
    throw new PawlError('CONFIG_NOT_FOUND', `There is no pawl.config.ts, .js or .mjs in ${io.cwd}.`, {
      details: { folder: io.cwd },
    });
  }
  const { config } = await loadConfig(path);
  const folder = resolve(io.cwd, flags.text('out') ?? 'stately');
  const isCheck = flags.is('check');
  const files = newest(config.agents)
    .flatMap((agent) => textsOf(agent))
    .map(({ name, text }): ExportedFile => {
      const target = join(folder, name);
      const file = relative(io.cwd, target);
      const before = existsSync(target) ? readFileSync(target, 'utf8') : null;
      if (before === text) return { file, fate: 'same' };
      if (isCheck) return { file, fate: before === null ? 'missing' : 'differs' };
      write(target, text);
      return { file, fate: 'written' };
    });
  const ok = files.every(({ fate }) => fate === 'same' || fate === 'written');
  answer(invocation, { ok, files }, render);
  return ok ? 0 : 1;
}

function newest(agents: readonly AgentDefinition[]): AgentDefinition[] {
  const byName = new Map<string, AgentDefinition>();
  for (const agent of agents) {
    const known = byName.get(agent.name);
    if (!known || known.version < agent.version) byName.set(agent.name, agent);
  }
  return [...byName.values()];
}

function textsOf({ name, version, machine }: AgentDefinition): { name: string; text: string }[] {
  return [
    { name: `${name}.machine.json`, text: `${JSON.stringify(toStatelyJson(machine), null, 2)}\n` },
    { name: `${name}.machine.ts`, text: toMachineSource(machine, `${name} version ${version}`) },
  ];
}

function write(target: string, text: string): void {
  try {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  } catch (cause) {
    throw new PawlError('INVALID_ARGUMENT', `${target} cannot be written: ${messageOf(cause)}`, {
      details: { file: target },
      cause,
    });
  }
}

function render({ ok, files }: { ok: boolean; files: ExportedFile[] }, paint: Paint): string {
  const lines = files.map(({ file, fate }) => {
    const colour = fate === 'differs' || fate === 'missing' ? 'red' : 'green';
    return `${paint(colour, fate.padEnd(7))}  ${file}`;
  });
  return `${[...lines, ...(ok ? [] : ['Write them with `pawl export`.'])].join('\n')}\n`;
}
