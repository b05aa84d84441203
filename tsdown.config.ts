import { fileURLToPath } from 'node:url';
import { defineConfig } from 'tsdown';

const shared = {
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // .js, as package.json says; the default for node is .mjs.
  fixedExtension: false,
} as const;

/** The package first; then the examples, which import the built package as a user would and stay out of the tarball. */
export default defineConfig([
  {
    ...shared,
    // Names, not a list: dist/index.js and not dist/src/index.js.
    entry: {
      index: 'src/index.ts',
      'persistence/sqlite/index': 'src/persistence/sqlite/index.ts',
      'persistence/memory/index': 'src/persistence/memory/index.ts',
      'testing/index': 'src/testing/index.ts',
      'cli/main': 'src/cli/main.ts',
    },
    outDir: 'dist',
    dts: true,
    clean: true,
  },
  {
    ...shared,
    entry: {
      'refund/agent': 'examples/refund/agent.ts',
      'refund/demo': 'examples/refund/demo.ts',
      'refund/payment-server': 'examples/refund/payment-server.ts',
      'refund/mail-server': 'examples/refund/mail-server.ts',
      'refund/worker': 'examples/refund/worker.ts',
    },
    outDir: 'dist/examples',
    dts: false,
    clean: false,
    plugins: [
      {
        name: 'use-the-built-package',
        resolveId(source: string) {
          if (!source.endsWith('/src/index.ts')) return null;
          return { id: fileURLToPath(new URL('./dist/index.js', import.meta.url)), external: true };
        },
      },
    ],
  },
]);
