/** Which store a command works on: `--store`, else the config's, else the default file. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { PawlError } from '../errors.ts';
import { openStore, type OpenStoreOptions } from '../persistence/open-store.ts';
import type { Store } from '../persistence/store.ts';
import { findConfig, isOpenedStore, loadConfig, type LoadedConfig } from './config.ts';
import type { Invocation } from './command.ts';
import type { Io } from './io.ts';

export interface LocatedStore {
  store: Store;
  /** For notices: its URL, or its kind when the config made it. */
  name: string;
}

export const DEFAULT_STORE = 'sqlite:./.pawl/pawl.db';

/**
 * Opens a store to look into it. The config is loaded only when `--store` does not say where; the agents are not needed.
 * @throws STORE_UNREACHABLE when its file does not exist: looking creates nothing
 */
export async function openForLooking(invocation: Invocation): Promise<LocatedStore> {
  const { io, flags } = invocation;
  const path = flags.text('store') === undefined ? findConfig(io, flags.text('config')) : null;
  const loaded = path === null ? null : await loadConfig(path);
  return locateStore(invocation, loaded, { create: false });
}

/** @throws STORE_URL_INVALID; STORE_UNREACHABLE when its file does not exist and may not be created */
export function locateStore(
  { io, flags }: Invocation,
  loaded: LoadedConfig | null,
  { create }: { create: boolean },
): LocatedStore {
  const configured = flags.text('store') ?? loaded?.config.store ?? DEFAULT_STORE;
  if (typeof configured === 'object' && isOpenedStore(configured)) return { store: configured, name: configured.kind };
  const { url: given, ...options }: { url: string } & OpenStoreOptions =
    typeof configured === 'string' ? { url: configured } : configured;
  const file = storeFile(io, given);
  if (!create && file !== null && !existsSync(file)) {
    throw new PawlError(
      'STORE_UNREACHABLE',
      `There is no store file ${file}. Name the right one with --store sqlite:PATH; \`pawl start\` and \`pawl work\` create it.`,
      { details: { store: given, file } },
    );
  }
  const url = absoluteUrl(io, given);
  return { store: openStore(url, options), name: url };
}

/** A `sqlite:` URL whose path begins at the root; others as they are. */
export function absoluteUrl(io: Io, url: string): string {
  const file = storeFile(io, url);
  return file === null ? url : `sqlite:${file}`;
}

/** The file behind a store URL; null when there is none. */
function storeFile(io: Io, url: string): string | null {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/s.exec(url)?.[1];
  return path === undefined || path === ':memory:' ? null : resolve(io.cwd, path);
}
