import { expect, test } from 'vitest';
import { chance, conductOf } from '../../examples/refund/conduct.ts';
import { refundTools, type RefundToolOptions } from '../../examples/refund/tools.ts';
import type { Json } from '../../src/records.ts';
import { asReconciled, isNotExecuted, isToolFailure } from '../../src/tools/outcome.ts';
import { toolOf, type ToolDefinition } from '../../src/tools/tool.ts';
import { mailServer, paymentServer, portOfNobody, SHORT_TOOLS, type Settings } from './servers.ts';

type Tools = Record<'readOrder' | 'issueRefund' | 'readRefund' | 'notifyVendor', ToolDefinition>;

const MONEY = { orderId: 'PO-1', amountCents: 5_000, currency: 'EUR' };
const NOTICE = { ...MONEY, refundId: 're_1', vendor: 'Nordwind', email: 'billing@nordwind.example' };

async function toolsAt(settings: Settings = {}, change: Partial<RefundToolOptions> = {}): Promise<Tools> {
  const [payments, mails] = await Promise.all([paymentServer(settings), mailServer(settings)]);
  return definitions({
    paymentUrl: payments.paymentUrl,
    smtpUrl: mails.smtpUrl,
    mailQueryUrl: mails.mailQueryUrl,
    dedupe: settings.dedupe ?? true,
    ...change,
  });
}

function definitions(options: Omit<RefundToolOptions, 'reconcile'> & { reconcile?: boolean }): Tools {
  const made = refundTools({ reconcile: true, timings: SHORT_TOOLS, ...options });
  return {
    readOrder: definition(made.readOrder),
    issueRefund: definition(made.issueRefund),
    readRefund: definition(made.readRefund),
    notifyVendor: definition(made.notifyVendor),
  };
}

function definition(logic: unknown): ToolDefinition {
  const found = toolOf(logic);
  if (!found) throw new Error('not a tool');
  return found;
}

const context = (input: Json, timeoutMs: number) => ({
  input,
  operationId: 'op-1',
  attempt: 1,
  signal: AbortSignal.timeout(timeoutMs),
  run: {
    runId: 'refund:PO-1',
    tenant: 'default',
    agent: 'refund',
    agentVersion: 1,
    sequence: 1,
    createdBy: null,
    subject: null,
    labels: {},
    traceId: 't',
  },
  artifacts: null,
});

/** The output, or what was thrown. */
const execute = (tool: ToolDefinition, input: Json): Promise<unknown> =>
  tool.execute(context(input, tool.timeoutMs)).catch((error: unknown) => error);

const reconcile = async (tool: ToolDefinition, input: Json): Promise<unknown> =>
  tool.reconcile?.(context(input, 1_000));

function kindOf(outcome: unknown): 'value' | 'failure' | 'not executed' | 'unknown' {
  if (!(outcome instanceof Error)) return 'value';
  return isToolFailure(outcome) ? 'failure' : isNotExecuted(outcome) ? 'not executed' : 'unknown';
}

test('a run of all four tools against servers that behave', async () => {
  const { readOrder, issueRefund, readRefund, notifyVendor } = await toolsAt();
  expect(await execute(readOrder, { orderId: 'PO-1' })).toMatchObject({ order: { ...MONEY, refundable: true } });
  expect(await execute(readOrder, { orderId: 'PO-none' })).toEqual({ order: null });
  expect(await execute(issueRefund, MONEY)).toEqual({ refundId: 're_1' });
  expect(await execute(readRefund, { refundId: 're_1' })).toEqual({ refund: MONEY });
  expect(await execute(readRefund, { refundId: 're_9' })).toEqual({ refund: null });
  expect(await execute(notifyVendor, NOTICE)).toEqual({ messageId: '<op-1@refunds.example>' });
});

test.concurrent.each([
  ['refuse', 'failure', 'absent'],
  ['accept-timeout', 'unknown', 'happened'],
  ['accept-reset', 'unknown', 'happened'],
  ['slow', 'value', 'happened'],
  ['late', 'unknown', 'absent'],
  ['error-500', 'unknown', 'absent'],
  ['query-down', 'unknown', 'unknown'],
  ['none', 'value', 'happened'],
] as const)('payments.refund under %s ends as %s, and asked right away it is %s', async (misbehave, ends, asked) => {
  const { issueRefund } = await toolsAt({ misbehave });
  // One that shows the conduct, and whose late effect is late enough to be asked for before.
  const orderId = Array.from({ length: 40 }, (_, at) => `PO-${at + 1}`).find(
    (id) =>
      (misbehave === 'none' || conductOf({ misbehave, seed: 1 }, id, 1) === misbehave) && chance(1, 'late', id) > 0.8,
  );
  const input = { ...MONEY, orderId: orderId ?? '' };
  expect(kindOf(await execute(issueRefund, input))).toBe(ends);
  expect(asReconciled(await reconcile(issueRefund, input))?.kind).toBe(asked);
});

test('what reconcile says happened is what execute would have returned', async () => {
  const { issueRefund, notifyVendor } = await toolsAt({ misbehave: 'accept-timeout' });
  await Promise.all([execute(issueRefund, MONEY), execute(notifyVendor, NOTICE)]);
  expect(await reconcile(issueRefund, MONEY)).toMatchObject({ output: { refundId: 're_1' } });
  expect(await reconcile(notifyVendor, NOTICE)).toMatchObject({ output: { messageId: '<op-1@refunds.example>' } });
});

test('a provider that is not there has done nothing, and its query cannot tell', async () => {
  const nobody = `127.0.0.1:${await portOfNobody()}`;
  const { issueRefund, notifyVendor } = definitions({
    paymentUrl: `http://${nobody}`,
    smtpUrl: `smtp://${nobody}`,
    mailQueryUrl: `http://${nobody}`,
    dedupe: true,
  });
  for (const [made, input] of [
    [issueRefund, MONEY],
    [notifyVendor, NOTICE],
  ] as const) {
    expect(kindOf(await execute(made, input))).toBe('not executed');
    expect(asReconciled(await reconcile(made, input))?.kind).toBe('unknown');
  }
});

test('an aborted call ends at once and proves nothing', async () => {
  const { issueRefund, notifyVendor } = await toolsAt({ misbehave: 'accept-timeout' });
  for (const [made, input] of [
    [issueRefund, MONEY],
    [notifyVendor, NOTICE],
  ] as const) {
    const startedMs = performance.now();
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const outcome = await made.execute({ ...context(input, 0), signal: abort.signal }).catch((error: unknown) => error);
    expect(kindOf(outcome)).toBe('unknown');
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  }
});

test('the tools declare what the servers can do', () => {
  const options = { paymentUrl: 'http://x', smtpUrl: 'smtp://x', mailQueryUrl: 'http://x' };
  const plain = definitions({ ...options, dedupe: false });
  expect(plain.issueRefund).toMatchObject({ effect: 'write', idempotent: false, reconcile: expect.any(Function) });
  expect(definitions({ ...options, dedupe: true }).notifyVendor.idempotent).toBe(true);
  expect(definitions({ ...options, dedupe: false, reconcile: false }).issueRefund.reconcile).toBeNull();
  expect(plain.issueRefund.key?.({ input: MONEY })).toEqual(['PO-1']);
});

test('a call that its caller means to die in asks the provider to hold', async () => {
  const held: string[] = [];
  const tools = await toolsAt({}, { crashHoldMs: ({ tool, runId }) => (held.push(`${tool} ${runId}`), 60) });
  for (const [made, input] of [
    [tools.issueRefund, MONEY],
    [tools.notifyVendor, NOTICE],
  ] as const) {
    const startedMs = performance.now();
    expect(kindOf(await execute(made, input))).toBe('value');
    expect(performance.now() - startedMs).toBeGreaterThan(59);
  }
  expect(held).toEqual(['payments.refund refund:PO-1', 'mail.notify refund:PO-1']);
});
