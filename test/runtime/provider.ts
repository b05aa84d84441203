/** A provider in this process: records each effect by operation id and misbehaves as it is told. */
import { didNotHappen, happened, unknown } from '../../src/tools/outcome.ts';
import { ToolFailure } from '../../src/tools/outcome.ts';

export type Mode = 'ok' | 'refuse' | 'acceptThenReset' | 'acceptThenHang' | 'error' | 'hang';

export class Provider {
  /** Every effect in the order in which it landed. */
  readonly effects: { operationId: string; order: string }[] = [];
  /** Modes of the next requests, first in first out; then `ok`. */
  readonly modes: Mode[] = [];
  /** Answers of the next queries; then the truth. */
  readonly queries: ('down' | 'truth')[] = [];
  requests = 0;
  queried = 0;
  readonly #dedupe: boolean;
  readonly #refused = new Set<string>();

  constructor(options: { dedupe?: boolean } = {}) {
    this.#dedupe = options.dedupe ?? false;
  }

  effectsOf(order: string): number {
    return this.effects.filter((effect) => effect.order === order).length;
  }

  async request(operationId: string, order: string, signal: AbortSignal): Promise<{ id: string }> {
    this.requests++;
    const mode = this.modes.shift() ?? 'ok';
    if (mode === 'refuse' || this.#refused.has(operationId)) {
      this.#refused.add(operationId);
      throw new ToolFailure('the provider refuses', { details: { order } });
    }
    if (mode === 'error') throw new Error('HTTP 500');
    if (mode === 'hang') return hang(signal);
    this.land(operationId, order);
    if (mode === 'acceptThenReset') throw new Error('socket hang up');
    if (mode === 'acceptThenHang') return hang(signal);
    return { id: `refund-${order}` };
  }

  land(operationId: string, order: string): void {
    if (this.#dedupe && this.effects.some((effect) => effect.operationId === operationId)) return;
    this.effects.push({ operationId, order });
  }

  async query(operationId: string): Promise<ReturnType<typeof happened> | ReturnType<typeof unknown>> {
    this.queried++;
    if (this.queries.shift() === 'down') return unknown('query is down');
    if (this.#refused.has(operationId)) throw new ToolFailure('the provider refused it');
    const effect = this.effects.find((known) => known.operationId === operationId);
    return effect ? happened({ id: `refund-${effect.order}` }) : (didNotHappen() as never);
  }
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')));
  });
}
