/** For tests of agents and stores. */
export { storeConformance } from './conformance/store-conformance.ts';
export type { ConformanceStore, ConformanceSupport } from './conformance/store-conformance.ts';
export { simulatedClock, type SimulatedClock } from './simulated-clock.ts';
