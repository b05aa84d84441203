/** The bench's answers for people. */

/** @param {import('./main.mjs').Report} report @returns {string} */
export function renderReport(report) {
  const { floor, pawl, targets, fitness, machine, growth, bytes, claims, coldStart, leases } = report;
  const parts = [
    `Pawl bench on ${machine}. Only ratios count: absolute figures are one machine at one moment.`,
    `Floor ${fitness.isFit ? 'fit' : 'UNFIT: nothing measured against it counts'}: of an empty transaction's speed it reaches ` +
      `${fixed(fitness.single, 2)} alone and ${fixed(fitness.group, 2)} in a group, ` +
      `${fixed(fitness.reference.single, 2)} and ${fixed(fitness.reference.group, 2)} when it was first measured.`,
    table(
      ['floor', 'steps/s', 'p50 µs', 'p99 µs', 'CPU µs'],
      floor.map((row) => [
        row.name,
        count(row.stepsPerSecond),
        count(row.p50Us),
        count(row.p99Us),
        count(row.cpuUsPerStep),
      ]),
    ),
    table(
      [
        'store',
        'durability',
        'mode',
        'steps/s',
        'p50 µs',
        'p99 µs',
        'of its floor',
        'from–to',
        'writes/step',
        'CPU µs',
      ],
      pawl.map((row) => [
        row.store,
        row.durability,
        row.mode,
        count(row.stepsPerSecond),
        count(row.p50Us),
        count(row.p99Us),
        fixed(row.ratioToFloor, 2),
        row.ratioRange.map((ratio) => fixed(ratio, 2)).join('–'),
        fixed(row.writesPerStep, 2),
        count(row.cpuUsPerStep),
      ]),
    ),
  ];
  const facts = [
    bytes && ['bytes a step', `${count(bytes.fixed)} at 2 KB, ${count(bytes.growing)} growing by 300 B`],
    ...growth.map((row) => [
      `step ${row.steps} / step 10`,
      `${fixed(row.growth, 2)} ${row.grows ? 'growing context' : 'fixed context'}, ${row.durability}`,
    ]),
    claims && [
      'claim',
      `${count(claims.earlyUs)} µs at step ${claims.earlyStep}, ${count(claims.lateUs)} µs at step ${claims.lateStep}`,
    ],
    coldStart && [
      'cold start',
      coldStart.stores
        .map((one) => `+${count(one.overBareMs)} ms (${one.finished} other runs, step ${one.step})`)
        .join(', '),
    ],
    leases && ['leased run', `${count(leases.bytesPerRun)} bytes beyond its context`],
  ].filter((row) => Array.isArray(row));
  parts.push(facts.map(([name, value]) => `${name.padEnd(20)} ${value}`).join('\n'));
  parts.push(
    table(
      ['target', '', 'measured', ''],
      targets.map((row) => [
        row.name,
        row.target,
        row.measured === null ? '–' : String(Number(row.measured.toPrecision(3))),
        row.isReached === null ? 'not measured' : row.isReached ? 'reached' : 'NOT reached',
      ]),
    ),
  );
  return `${parts.join('\n\n')}\n`;
}

/** @param {Awaited<ReturnType<typeof import('./profile.mjs').profileWork>>} profile */
export function renderProfile({ rows, files, usPerStep }) {
  const lines = (/** @type {typeof rows} */ list) =>
    table(
      ['µs/step', 'share', 'file', 'function:line'],
      list.map((row) => [fixed(row.selfUs, 1), `${fixed(row.share * 100, 1)} %`, row.place, row.name]),
    );
  return [
    `64 runs at once, disk: ${fixed(usPerStep, 0)} µs a step under the profiler, by self time.`,
    'Calls into SQLite have one name of the driver, whatever they do; (program) is mostly waiting for the disk.',
    lines(rows),
    lines(files),
    '',
  ].join('\n\n');
}

/** @param {string[]} head @param {string[][]} rows */
function table(head, rows) {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const isNumber = head.map((_, column) => rows.every((row) => /^[\d.,–\s%-]*$/.test(row[column] ?? '')));
  const line = (/** @type {string[]} */ row) =>
    row
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n');
}

/** @param {number} value */
function count(value) {
  return Math.round(value).toLocaleString('en');
}

/** @param {number} value @param {number} digits */
function fixed(value, digits) {
  return value.toFixed(digits);
}
