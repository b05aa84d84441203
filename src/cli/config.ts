/** pawl.config: which agents there are and where their runs are stored. Only commands that need the agents load it. */
import { existsSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isPawlError, messageOf, PawlError } from '../errors.ts';
import type { AgentDefinition } from '../machines/define-agent.ts';
import type { OpenStoreOptions } from '../persistence/open-store.ts';
import type { Store } from '../persistence/store.ts';
import type { RuntimeOptions } from '../runtime/create-runtime.ts';
import type { Io } from './io.ts';

/** Where the runs are: a URL, a URL with options of `openStore`, or a store made by the config itself. */
export type ConfiguredStore = string | Store | ({ url: string } & OpenStoreOptions);

/** What a config file exports as its default. */
export interface Config extends Partial<Omit<RuntimeOptions<AgentDefinition>, 'agents' | 'store'>> {
  agents: readonly AgentDefinition[];
  store?: ConfiguredStore;
}

export interface LoadedConfig {
  config: Config;
  path: string;
}

const NAMES = ['pawl.config.ts', 'pawl.config.js', 'pawl.config.mjs'];

const KEYS = [
  'agents',
  'store',
  'models',
  'dispatcher',
  'artifacts',
  'codec',
  'clock',
  'ids',
  'telemetry',
  'logger',
  'policy',
  'prices',
  'leaseMs',
  'sweepMs',
  'durability',
  'crashPoints',
];

/** The config's path, or null when none was named and none is here. @throws CONFIG_NOT_FOUND for a named one */
export function findConfig(io: Io, named: string | undefined): string | null {
  if (named === undefined) return NAMES.map((name) => resolve(io.cwd, name)).find((path) => existsSync(path)) ?? null;
  const path = resolve(io.cwd, named);
  if (existsSync(path)) return path;
  throw new PawlError('CONFIG_NOT_FOUND', `There is no config file ${path}.`, { details: { path } });
}

/** @throws CONFIG_INVALID, MISSING_PACKAGE, and whatever code the config's own definitions are refused with */
export async function loadConfig(path: string): Promise<LoadedConfig> {
  let exported: unknown;
  try {
    exported = await importDefault(path);
  } catch (error) {
    if (isPawlError(error)) throw error;
    throw new PawlError('CONFIG_INVALID', `${path} could not be loaded: ${messageOf(error)}`, {
      details: { path },
      cause: error,
    });
  }
  const problem = configProblem(exported);
  if (problem !== null) throw new PawlError('CONFIG_INVALID', `${path}: ${problem}.`, { details: { path } });
  return { config: exported as Config, path };
}

/** TypeScript as the Node can read it, else through jiti. */
async function importDefault(path: string): Promise<unknown> {
  if (extname(path) !== '.ts' || canImportTypeScript()) {
    const module = (await import(pathToFileURL(path).href)) as { default?: unknown };
    return module.default;
  }
  const { createJiti } = await importJiti(path);
  return createJiti(import.meta.url).import(path, { default: true });
}

function canImportTypeScript(): boolean {
  const { typescript } = process.features as { typescript?: false | string };
  return typeof typescript === 'string';
}

async function importJiti(path: string): Promise<typeof import('jiti')> {
  try {
    return await import('jiti');
  } catch (cause) {
    throw new PawlError(
      'MISSING_PACKAGE',
      `${path} is TypeScript, which Node ${process.versions.node} does not read by itself. Run: npm install --save-dev jiti`,
      { details: { package: 'jiti', path }, cause },
    );
  }
}

function configProblem(exported: unknown): string | null {
  if (typeof exported !== 'object' || exported === null) return 'the default export is no object';
  const unknown = Object.keys(exported).filter((key) => !KEYS.includes(key));
  if (unknown.length > 0) return `unknown ${unknown.join(', ')}; a config has ${KEYS.slice(0, -1).join(', ')}`;
  const { agents, store } = exported as { agents?: unknown; store?: unknown };
  if (!Array.isArray(agents) || agents.length === 0) return 'agents is no list with at least one agent';
  const wrong = agents.findIndex((agent) => !isAgent(agent));
  if (wrong >= 0) return `agents[${wrong}] is not what defineAgent() returns`;
  return store === undefined || isStore(store) ? null : 'store is neither a URL, nor { url }, nor a store';
}

function isAgent(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'name' in value && 'durable' in value && 'structure' in value;
}

function isStore(value: unknown): value is ConfiguredStore {
  if (typeof value === 'string') return true;
  if (typeof value !== 'object' || value === null) return false;
  return isOpenedStore(value as ConfiguredStore) || typeof (value as { url?: unknown }).url === 'string';
}

export function isOpenedStore(store: ConfiguredStore): store is Store {
  return typeof store === 'object' && 'claim' in store && 'kind' in store;
}
