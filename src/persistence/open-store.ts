/** A store by its URL. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../clock.ts';
import { messageOf, PawlError } from '../errors.ts';
import { memoryStore } from './memory/memory-store.ts';
import { sqliteStore } from './sqlite/sqlite-store.ts';
import type { Store } from './store.ts';

export interface OpenStoreOptions {
  durability?: 'disk' | 'process';
  namespace?: string;
  busyTimeoutMs?: number;
  clock?: Pick<Clock, 'nowMs'>;
}

/**
 * Opens `sqlite:PATH` (its folder is created), `sqlite::memory:` or `memory:`. The file is opened by the first call.
 * @throws STORE_URL_INVALID for anything else; STORE_UNREACHABLE when the folder cannot be created
 * @example const store = openStore('sqlite:./.pawl/pawl.db');
 */
export function openStore(url: string, options: OpenStoreOptions = {}): Store {
  if (url === 'memory:') return memoryStore(options);
  if (/^(rediss?|postgres(ql)?):/.test(url)) {
    const scheme = url.slice(0, url.indexOf(':'));
    throw new PawlError('STORE_URL_INVALID', `${scheme}: stores are not available yet. Use sqlite:PATH or memory:.`);
  }
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/s.exec(url)?.[1];
  if (path === undefined) {
    throw new PawlError('STORE_URL_INVALID', `${JSON.stringify(url)} names no store. Use sqlite:PATH or memory:.`);
  }
  if (path !== ':memory:') createFolder(path);
  return sqliteStore({ ...options, path });
}

function createFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (cause) {
    throw new PawlError('STORE_UNREACHABLE', `The folder of sqlite:${path} cannot be created: ${messageOf(cause)}`, {
      details: { path },
      cause,
    });
  }
}
