/** A runtime over the config's agents and the store, for commands that act. */
import { PawlError } from '../errors.ts';
import type { AgentDefinition } from '../machines/define-agent.ts';
import { createRuntime } from '../runtime/create-runtime.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Invocation } from './command.ts';
import { findConfig, loadConfig } from './config.ts';
import { locateStore } from './locate-store.ts';

export interface OpenedRuntime {
  /** Its events and inputs come from argv, so they are known to be nothing but JSON; the runtime checks them. */
  pawl: Runtime<AgentDefinition>;
  agents: readonly AgentDefinition[];
  storeName: string;
}

/**
 * `agents: 'optional'` works without a config: commands that only store something need no agent. `create` lets a store
 * that is not there yet be made.
 * @throws CONFIG_NOT_FOUND, CONFIG_INVALID, STORE_URL_INVALID, STORE_UNREACHABLE
 */
export async function openRuntime(
  invocation: Invocation,
  needs: { agents: 'required' | 'optional'; create: boolean; logger?: Logger },
): Promise<OpenedRuntime> {
  const { io, flags } = invocation;
  const path = findConfig(io, flags.text('config'));
  if (path === null && needs.agents === 'required') {
    throw new PawlError(
      'CONFIG_NOT_FOUND',
      `There is no pawl.config.ts, .js or .mjs in ${io.cwd}; the command needs the agents that it exports.`,
      { details: { folder: io.cwd } },
    );
  }
  const loaded = path === null ? null : await loadConfig(path);
  const { store, name } = locateStore(invocation, loaded, needs);
  const { agents = [], store: _configured, ...options } = loaded?.config ?? {};
  const pawl = createRuntime({ ...(needs.logger ? { logger: needs.logger } : {}), ...options, agents, store });
  return { pawl, agents, storeName: name };
}

/** Opens a runtime, uses it, and closes it with its store, whatever happens. */
export async function withRuntime(
  invocation: Invocation,
  needs: Parameters<typeof openRuntime>[1],
  use: (opened: OpenedRuntime) => Promise<number>,
): Promise<number> {
  const opened = await openRuntime(invocation, needs);
  try {
    return await use(opened);
  } finally {
    await opened.pawl.close();
  }
}
