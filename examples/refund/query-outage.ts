/** Queries that are down for a while, from the first one for an armed subject on. */
export function createQueryOutage(downMs: number): { arm(subject: string): void; isDown(subject: string): boolean } {
  const since = new Map<string, number | null>();
  return {
    arm(subject) {
      if (!since.has(subject)) since.set(subject, null);
    },
    isDown(subject) {
      if (!since.has(subject)) return false;
      const first = since.get(subject) ?? performance.now();
      since.set(subject, first);
      return performance.now() - first < downMs;
    },
  };
}
