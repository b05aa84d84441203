/** The layer rule (ARCHITECTURE.md): imports go downwards only, each outside package has one home. */
const leaf = '(records|commit-record|errors|error-codes|clock|json|patch)[.]ts';
const layer = (name, from, may) => ({
  name: `layer-${name}`,
  severity: 'error',
  from: { path: `^src/${from}` },
  to: { path: '^src/', pathNot: `^src/(${may})` },
});
const home = (name, pkg, where) => ({
  name: `home-of-${name}`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/(${where})` },
  to: { path: `(^|/)node_modules/${pkg}/` },
});

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    layer('leaf', leaf, leaf),
    layer('machines', 'machines/', `${leaf}|machines/`),
    layer('tools', 'tools/', `${leaf}|machines/|tools/`),
    layer('persistence', 'persistence/', `${leaf}|persistence/`),
    layer('runtime', 'runtime/', `${leaf}|machines/|tools/|persistence/|runtime/`),
    {
      name: 'nobody-imports-testing-or-index',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/testing/' },
      to: { path: '^src/(testing/|index[.]ts)' },
    },
    home('xstate', '(xstate|@xstate)', 'machines/'),
    home('libsql', 'libsql', 'persistence/sqlite/'),
    home('canonicalize', 'canonicalize', 'json[.]ts'),
    home('jiti', 'jiti', 'cli/'),
    {
      name: 'machines-are-pure',
      severity: 'error',
      from: { path: '^src/machines/' },
      to: { dependencyTypes: ['core'], pathNot: '^crypto$|^node:crypto$' },
    },
    {
      name: 'node-has-homes',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: '^src/(persistence/|cli/|testing/|clock[.]ts|json[.]ts|machines/determinism[.]ts)',
      },
      to: { dependencyTypes: ['core'], pathNot: '^util$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default'] },
  },
};
