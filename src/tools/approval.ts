/** approval(): people agree to exactly what is covered, before the operations that require it. */
import type { z } from 'zod';
import { brandOf, createLogic, type DurableLogic } from '../machines/logic.ts';
import type { Json } from '../records.ts';
import { checkFunction, checkNaming, checkWhole, refuseDefinition, shown } from './definition-checks.ts';
import { jsonSchemaOf } from './json-schema.ts';
import type { RunInfo } from './tool.ts';

export interface ApproverSpec {
  /** A voter needs one of them; at least one. */
  roles: string[];
  /** Different voters who must approve; 1 to 100. Default 1. */
  quorum?: number | undefined;
  /** Whoever created the run may not vote. Default false. */
  notRequester?: boolean | undefined;
}

export interface ApprovalSpec<C extends z.ZodType> {
  name: string;
  version: string;
  /** Plain JSON: what the voters see and what is bound by digest. */
  covers: C;
  approvers: ApproverSpec;
  /** From the request; 1 s to 1 year. */
  expiresInMs: number;
  /** May this voter still approve? Asked at the vote and again before each covered attempt. */
  authorize: (arg: { by: string; roles: string[]; covers: z.output<C>; run: RunInfo }) => Promise<boolean> | boolean;
  /** Version of the thing decided about; a change invalidates the approval. */
  resourceVersion?: ((arg: { covers: z.output<C>; run: RunInfo }) => Promise<string> | string) | undefined;
}

export interface ApprovalDefinition {
  name: string;
  version: string;
  covers: z.ZodType;
  coversJsonSchema: Json;
  approvers: { roles: string[]; quorum: number; notRequester: boolean };
  expiresInMs: number;
  authorize(arg: { by: string; roles: string[]; covers: Json; run: RunInfo }): Promise<boolean> | boolean;
  resourceVersion: ((arg: { covers: Json; run: RunInfo }) => Promise<string> | string) | null;
}

export interface ApprovalOutput {
  verdict: 'approved';
  by: string[];
  requestId: string;
}

// Input `any`: a tool only names an approval, it does not invoke it.
// oxlint-disable-next-line typescript/no-explicit-any
export type ApprovalLogic<TInput = any> = DurableLogic<'approval', TInput, ApprovalOutput, ApprovalDefinition>;

/**
 * Defines an approval as XState actor logic; its invoke input is `{ covers, note? }`.
 *
 * @throws {PawlError} TOOL_INVALID when the definition is not complete; the message says what to write.
 */
export function approval<C extends z.ZodType>(
  spec: ApprovalSpec<C>,
): ApprovalLogic<{ covers: z.input<C>; note?: string | undefined }> {
  const what = checkNaming('Approval', spec);
  const coversJsonSchema = jsonSchemaOf(what, 'covers', spec.covers, 'output');
  jsonSchemaOf(what, 'covers', spec.covers, 'input');
  const { roles, quorum = 1, notRequester = false } = spec.approvers ?? {};
  if (!Array.isArray(roles) || roles.length === 0 || roles.some((role) => typeof role !== 'string' || role === '')) {
    refuseDefinition(what, `approvers.roles is ${shown(roles)}`, 'name at least one role; nobody could vote otherwise');
  }
  checkWhole(what, 'approvers.quorum', quorum, 1, 100);
  checkWhole(what, 'expiresInMs', spec.expiresInMs, 1000, 366 * 86_400_000);
  checkFunction(what, 'authorize', spec.authorize);
  if (spec.resourceVersion !== undefined) checkFunction(what, 'resourceVersion', spec.resourceVersion);
  const definition: ApprovalDefinition = {
    name: spec.name,
    version: spec.version,
    covers: spec.covers,
    coversJsonSchema,
    approvers: { roles: [...roles], quorum, notRequester },
    expiresInMs: spec.expiresInMs,
    // The author's types are erased here: `covers` is parsed before these are called.
    authorize: spec.authorize as ApprovalDefinition['authorize'],
    resourceVersion: (spec.resourceVersion as ApprovalDefinition['resourceVersion'] | undefined) ?? null,
  };
  return createLogic({ kind: 'approval', name: spec.name, definition: Object.freeze(definition) });
}

/** The definition inside logic made by `approval`; null for any other value. */
export function approvalOf(logic: unknown): ApprovalDefinition | null {
  const brand = brandOf(logic);
  return brand?.kind === 'approval' ? (brand.definition as ApprovalDefinition) : null;
}
