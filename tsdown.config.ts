import { defineConfig } from 'tsdown';

export default defineConfig({
  // Names, not a list: dist/index.js and not dist/src/index.js, although the examples lie beside src.
  entry: {
    index: 'src/index.ts',
    'persistence/sqlite/index': 'src/persistence/sqlite/index.ts',
    'persistence/memory/index': 'src/persistence/memory/index.ts',
    'testing/index': 'src/testing/index.ts',
    'cli/main': 'src/cli/main.ts',
    'examples/refund/agent': 'examples/refund/agent.ts',
    'examples/refund/demo': 'examples/refund/demo.ts',
    'examples/refund/payment-server': 'examples/refund/payment-server.ts',
    'examples/refund/mail-server': 'examples/refund/mail-server.ts',
    'examples/refund/worker': 'examples/refund/worker.ts',
  },
  outDir: 'dist',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // .js, as package.json says; the default for node is .mjs.
  fixedExtension: false,
  dts: true,
  clean: true,
});
