/** `node bench/build-package.mjs FOLDER [--unbundle]`: the entries that the bench uses, built as `npm run build` does. */
import { build } from 'tsdown';

const [outDir, flag] = process.argv.slice(2);
await build({
  config: false,
  entry: {
    index: 'src/index.ts',
    'persistence/sqlite/index': 'src/persistence/sqlite/index.ts',
    'persistence/memory/index': 'src/persistence/memory/index.ts',
  },
  outDir,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  fixedExtension: false,
  unbundle: flag === '--unbundle',
  dts: false,
  logLevel: 'error',
  deps: { onlyBundle: false },
});
