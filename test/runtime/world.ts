/** A run on a store with workers that can be frozen at a boundary: a killed process, as the others see it. */
import type { AgentDefinition } from '../../src/machines/define-agent.ts';
import type { Clock } from '../../src/clock.ts';
import type { Policy } from '../../src/tools/policy.ts';
import type { Logger } from '../../src/runtime/logger.ts';
import type { Worker } from '../../src/runtime/worker.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import type { CrashPoint, CrashPointInfo } from '../../src/runtime/crash-points.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { StoreKind, TestStore } from './stores.ts';

export const LEASE_MS = 300;

export interface World<A extends AgentDefinition> {
  test: TestStore;
  /** A runtime with a worker; with `freezeAt` everything stops for ever at that boundary. `leave`: never closed; `idle`: no worker. */
  spawn(options?: {
    freezeAt?: { point: CrashPoint; tool?: string };
    store?: Store;
    policy?: Policy;
    leave?: boolean;
    idle?: boolean;
    /** Instead of the world's: the same agents after a change of code. */
    agents?: readonly A[];
    leaseMs?: number;
    concurrency?: number;
    logger?: Logger;
  }): Spawned<A>;
  close(): Promise<void>;
}

export interface Spawned<A extends AgentDefinition> {
  pawl: Runtime<A>;
  /** Null when idle. */
  worker: Worker | null;
  /** Resolves when the boundary was reached. */
  frozen: Promise<CrashPointInfo>;
}

export function openWorld<A extends AgentDefinition>(kind: StoreKind, agents: readonly A[], clock?: Clock): World<A> {
  const test = kind.open(clock);
  const alive: Runtime<A>[] = [];
  return {
    test,
    spawn(options = {}) {
      const { freezeAt } = options;
      let reached: (info: CrashPointInfo) => void = () => {};
      const frozen = new Promise<CrashPointInfo>((resolve) => {
        reached = resolve;
      });
      let dead = false;
      const store = mortal(options.store ?? test.again(), () => dead);
      const pawl = createRuntime<A>({
        agents: options.agents ?? agents,
        store,
        leaseMs: options.leaseMs ?? LEASE_MS,
        // Virtual days are swept in a few steps, real tests at once.
        sweepMs: clock ? 600_000 : 25,
        ...(clock ? { clock } : {}),
        ...(options.policy ? { policy: options.policy } : {}),
        ...(options.logger ? { logger: options.logger } : {}),
        ...(freezeAt
          ? {
              crashPoints: {
                reached(point, info) {
                  if (dead) return forever();
                  if (point !== freezeAt.point) return undefined;
                  if (freezeAt.tool !== undefined && info.tool !== freezeAt.tool) return undefined;
                  dead = true;
                  reached(info);
                  return forever();
                },
                wantsB6: (info) =>
                  freezeAt.point === 'B6' && !dead && (freezeAt.tool === undefined || info.tool === freezeAt.tool),
              },
            }
          : {}),
      });
      const worker = options.idle === true ? null : pawl.work({ concurrency: options.concurrency ?? 8 });
      if (!freezeAt && options.leave !== true) alive.push(pawl);
      return { pawl, worker, frozen };
    },
    async close() {
      for (const pawl of alive) await pawl.close();
      await test.remove();
    },
  };
}

function forever(): Promise<never> {
  return new Promise(() => {});
}

/** A store whose calls never answer once its process is dead. */
function mortal(store: Store, isDead: () => boolean): Store {
  return new Proxy(store, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function' || property === 'watch' || property === 'read') {
        return typeof value === 'function' ? value.bind(target) : value;
      }
      return (...args: unknown[]) =>
        isDead() ? forever() : (value as (...given: unknown[]) => unknown).apply(target, args);
    },
  });
}
