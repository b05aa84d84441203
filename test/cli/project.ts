/** A folder with a config and a store, as somebody who uses Pawl has it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Config } from '../../src/cli/config.ts';
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import { sqliteStore } from '../../src/persistence/sqlite/index.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { documentOf, pawl, type CommandLineOptions, type Said } from './command-line.ts';

const CONFIGS = new Map<string, Config>();
Object.assign(globalThis, { pawlTestConfigs: CONFIGS });

export interface Project {
  folder: string;
  /** The store's file. */
  path: string;
  run(argv: readonly string[], options?: CommandLineOptions): Promise<Said>;
  /** With `--json`; the parsed document beside what was said. */
  json(argv: readonly string[]): Promise<Said & { document: unknown }>;
  /** Another connection to the same store, with a worker that sweeps fast; closed when the test ends. */
  work(): Runtime<AgentDefinition>;
}

/** Without `agents` there is a store, but no config. */
export function newProject(config: Partial<Config> = {}): Project {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-cli-'));
  const path = join(folder, '.pawl', 'pawl.db');
  onTestFinished(() => {
    CONFIGS.delete(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  const { agents } = config;
  if (agents) {
    CONFIGS.set(folder, { sweepMs: 20, leaseMs: 500, ...config, agents });
    writeFileSync(
      join(folder, 'pawl.config.mjs'),
      `export default globalThis.pawlTestConfigs.get(${JSON.stringify(folder)});\n`,
    );
  }
  const run: Project['run'] = (argv, options) => pawl(argv, { cwd: folder, ...options });
  return {
    folder,
    path,
    run,
    async json(argv) {
      const said = await run([...argv, '--json']);
      return { ...said, document: documentOf(said) };
    },
    work() {
      const runtime = createRuntime({ agents: agents ?? [], store: sqliteStore({ path }), sweepMs: 20, leaseMs: 500 });
      runtime.work();
      onTestFinished(() => runtime.close());
      return runtime;
    },
  };
}
