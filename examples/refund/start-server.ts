/** Starts the payment server and the mail server as processes of their own, and asks them for their judgement. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import type { Misbehaviour } from './conduct.ts';
import { mailJudgement, type MailJudgement } from './mail-box.ts';
import type { Order } from './orders.ts';
import { paymentJudgement, type PaymentJudgement } from './payment-ledger.ts';
import type { ServerTimings } from './timings.ts';

export interface ServerSettings {
  /** The server's own SQLite file. */
  file: string;
  misbehave?: Misbehaviour;
  seed?: number;
  dedupe?: boolean;
  timings?: Partial<ServerTimings>;
}

export interface RunningServer<J> {
  pid: number;
  /** Waits until nothing is under way any more, then counts from the database. */
  judge(): Promise<J>;
  stop(): Promise<void>;
}

export interface RunningPaymentServer extends RunningServer<PaymentJudgement> {
  paymentUrl: string;
}

export interface RunningMailServer extends RunningServer<MailJudgement> {
  smtpUrl: string;
  mailQueryUrl: string;
}

export async function startPaymentServer(
  settings: ServerSettings & { orders: Order[] },
): Promise<RunningPaymentServer> {
  const orderFile = `${settings.file}.orders.json`;
  writeFileSync(orderFile, JSON.stringify(settings.orders));
  const child = spawnProgram('payment-server', [...flagsOf(settings), '--orders', orderFile]);
  const [port] = await portsOf(child);
  const paymentUrl = `http://127.0.0.1:${port}`;
  return { paymentUrl, ...controlsOf(child, paymentUrl, paymentJudgement) };
}

export async function startMailServer(settings: ServerSettings): Promise<RunningMailServer> {
  const child = spawnProgram('mail-server', flagsOf(settings));
  const [smtpPort, queryPort] = await portsOf(child);
  const mailQueryUrl = `http://127.0.0.1:${queryPort}`;
  return { smtpUrl: `smtp://127.0.0.1:${smtpPort}`, mailQueryUrl, ...controlsOf(child, mailQueryUrl, mailJudgement) };
}

/**
 * Spawns a program of this folder with an IPC channel; it ends when the channel does. Standard error is passed on.
 * From the sources, which Node 20 cannot run as they are, jiti translates on the way.
 */
export function spawnProgram(name: 'payment-server' | 'mail-server' | 'worker', args: string[]): ChildProcess {
  const file = programFile(name);
  const command = file.endsWith('.ts') ? ['--import', import.meta.resolve('jiti/register'), file] : [file];
  return spawn(process.execPath, [...command, ...args], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
}

/** Beside this module, or where the bundler put it if this module became part of a shared chunk. */
function programFile(name: string): string {
  const places = ['./', './refund/'].map((folder) => `${folder}${name}${extname(import.meta.url)}`);
  const files = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = files.find((file) => existsSync(file));
  if (found === undefined) throw new Error(`The program ${name} is not at ${files.join(' or ')}.`);
  return found;
}

/** Asks a server for its own count, once nothing is under way there any more. */
export async function judgeOf<J extends { pending: number }>(url: string, judgement: z.ZodType<J>): Promise<J> {
  for (;;) {
    const judged = judgement.parse(await (await fetch(`${url}/judge`)).json());
    if (judged.pending === 0) return judged;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function flagsOf({ file, misbehave = 'none', seed = 1, dedupe = true, timings = {} }: ServerSettings): string[] {
  const values = { file, misbehave, seed, dedupe: dedupe ? 'on' : 'off', timings: JSON.stringify(timings) };
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

function portsOf(child: ChildProcess): Promise<number[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const ports = /^ready ([\d ]+)\n/.exec(text)?.[1];
      if (ports) resolve(ports.split(' ').map(Number));
    });
    child.once('exit', (code, signal) => reject(new Error(`A server ended before it was ready (${code ?? signal}).`)));
    child.once('error', reject);
  });
}

function controlsOf<J extends { pending: number }>(
  child: ChildProcess,
  url: string,
  judgement: z.ZodType<J>,
): RunningServer<J> {
  return {
    pid: child.pid ?? 0,
    judge: () => judgeOf(url, judgement),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}
