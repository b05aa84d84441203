// Makes `npx pawl` work inside this repository: npm links the bins of dependencies, not of the package itself.
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const main = join('dist', 'cli', 'main.js');
const bin = join('node_modules', '.bin');
if (existsSync(main) && existsSync('node_modules')) {
  chmodSync(main, 0o755);
  mkdirSync(bin, { recursive: true });
  const link = join(bin, 'pawl');
  if (lstatSync(link, { throwIfNoEntry: false })) rmSync(link);
  symlinkSync(join('..', '..', main), link);
}
