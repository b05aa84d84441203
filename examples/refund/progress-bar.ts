/** A progress bar on one line of a terminal; silent anywhere else. */

export interface ProgressBar {
  show(done: number, total: number, note: string): void;
  /** Clears the line, so that other text can follow. */
  clear(): void;
}

export interface TextStream {
  write(text: string): unknown;
  isTTY?: boolean | undefined;
}

const WIDTH = 30;

export function createProgressBar(stream: TextStream): ProgressBar {
  if (!stream.isTTY) return { show: () => undefined, clear: () => undefined };
  return {
    show(done, total, note) {
      const filled = total === 0 ? WIDTH : Math.round((done / total) * WIDTH);
      stream.write(`\r\u001B[2K${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${done}/${total}  ${note}`);
    },
    clear: () => void stream.write('\r\u001B[2K'),
  };
}
