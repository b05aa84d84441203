/** Catches what code takes from its surroundings instead of being given it: the time, and chance. */

interface Trapped<T> {
  real: T;
  proxy: T;
}

let trappedDate: Trapped<DateConstructor> | null = null;
let trappedConsole: Trapped<Console> | null = null;
/** What stood in the places of the trap while it is set. */
let saved: { date: DateConstructor; now: () => number; console: Console; report: (source: string) => never } | null =
  null;

/** Whoever kept a trap beyond its step gets the real thing. */
const trapNow = (): number => (saved === null ? Date.now() : saved.report('Date.now()'));

/** Ambient sources by the object that holds them, so that an assignment replaces and restores them cheaply. */
const SOURCES = [
  source(Math, 'random', 'Math.random()'),
  source(globalThis.crypto, 'randomUUID', 'crypto.randomUUID()'),
  source(globalThis.crypto, 'getRandomValues', 'crypto.getRandomValues()'),
  source(globalThis.performance, 'now', 'performance.now()'),
];

function source(object: object, key: string, name: string): AmbientSource {
  let owner: object | null = object;
  while (owner !== null && !Object.hasOwn(owner, key)) owner = Object.getPrototypeOf(owner) as object | null;
  const made: AmbientSource = {
    owner: (owner ?? object) as Record<string, unknown>,
    key,
    real: undefined,
    trap: (...args) => (saved === null ? Reflect.apply(made.real as () => unknown, object, args) : saved.report(name)),
  };
  return made;
}

interface AmbientSource {
  owner: Record<string, unknown>;
  key: string;
  real: unknown;
  trap: (...args: unknown[]) => unknown;
}

/**
 * Replaces the ambient sources until `releaseTrap`; each call of one is reported instead. Set it around synchronous code
 * only: nobody else then sees it.
 */
export function setTrap(report: (source: string) => never): void {
  const date = globalThis.Date;
  saved = { date, now: date.now, console: globalThis.console, report };
  date.now = trapNow;
  if (trappedDate?.real !== date) trappedDate = { real: date, proxy: strictDate(date) };
  globalThis.Date = trappedDate.proxy;
  if (trappedConsole?.real !== saved.console)
    trappedConsole = { real: saved.console, proxy: pausingConsole(saved.console) };
  globalThis.console = trappedConsole.proxy;
  for (const ambientSource of SOURCES) {
    ambientSource.real = ambientSource.owner[ambientSource.key];
    ambientSource.owner[ambientSource.key] = ambientSource.trap;
  }
}

export function releaseTrap(): void {
  if (saved === null) return;
  globalThis.Date = saved.date;
  saved.date.now = saved.now;
  globalThis.console = saved.console;
  for (const { owner, key, real } of SOURCES) owner[key] = real;
  saved = null;
}

/** `new Date(iso)` stays; `new Date()`, `Date()` and `Date.now()` throw. */
function strictDate(real: DateConstructor): DateConstructor {
  const proxy: DateConstructor = new Proxy(real, {
    construct(target, args: unknown[], newTarget: object): Date {
      if (args.length === 0) saved?.report('new Date()');
      return Reflect.construct(target, args, (newTarget === proxy ? target : newTarget) as typeof target) as Date;
    },
    apply: (target) => (saved === null ? target() : saved.report('Date()')),
  });
  return proxy;
}

/** Somebody looks at a guard with console.log, and the console wants to know the time: that is not the guard's doing. */
function pausingConsole(real: Console): Console {
  return new Proxy(real, {
    get(target, key, receiver) {
      const method: unknown = Reflect.get(target, key, receiver);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown => {
        const report = saved?.report;
        releaseTrap();
        try {
          return Reflect.apply(method, target, args) as unknown;
        } finally {
          if (report !== undefined) setTrap(report);
        }
      };
    },
  });
}
