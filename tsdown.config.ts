import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/persistence/sqlite/index.ts',
    'src/persistence/memory/index.ts',
    'src/testing/index.ts',
    'src/cli/main.ts',
    'examples/refund/demo.ts',
    'examples/refund/payment-server.ts',
    'examples/refund/mail-server.ts',
    'examples/refund/worker.ts',
  ],
  outDir: 'dist',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  dts: true,
  clean: true,
});
