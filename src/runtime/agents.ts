/** The agents a runtime knows: by name and version, with the tools their charts use. */
import { PawlError } from '../errors.ts';
import type { AgentDefinition } from '../machines/define-agent.ts';
import { childMachines } from '../machines/registration.ts';
import type { RunRecord } from '../records.ts';
import { toolOf, type ToolDefinition } from '../tools/tool.ts';

export interface RegisteredAgent {
  definition: AgentDefinition;
  /** By the name an invoke uses as `src`. */
  toolsBySrc: ReadonlyMap<string, ToolDefinition>;
  /** By the tool's own name, also those that only compensate. */
  toolsByName: ReadonlyMap<string, ToolDefinition>;
  /** Types that callers may send. */
  callerEvents: string[];
  /** Versions and schema digests, as stored with each run. */
  toolVersions: RunRecord['versions']['tools'];
}

export class AgentRegistry {
  readonly #agents = new Map<string, RegisteredAgent[]>();

  /**
   * @throws AGENT_DUPLICATE for a name and version given twice
   * @throws CHILDREN_NOT_YET, DECISIONS_NOT_YET, APPROVALS_NOT_YET for charts that use what does not exist yet
   */
  constructor(definitions: readonly AgentDefinition[]) {
    for (const definition of definitions) {
      const versions = this.#agents.get(definition.name) ?? [];
      if (versions.some((agent) => agent.definition.version === definition.version)) {
        throw new PawlError(
          'AGENT_DUPLICATE',
          `Agent '${definition.name}' version ${definition.version} is registered twice; give each version once.`,
          { details: { agent: definition.name, version: definition.version } },
        );
      }
      versions.push(register(definition));
      versions.sort((a, b) => b.definition.version - a.definition.version);
      this.#agents.set(definition.name, versions);
    }
  }

  /** The newest version of an agent. @throws AGENT_UNKNOWN */
  newest(name: string): RegisteredAgent {
    const agent = this.#agents.get(name)?.[0];
    if (agent) return agent;
    const known = [...this.#agents.keys()];
    throw new PawlError(
      'AGENT_UNKNOWN',
      `No agent '${name}' is registered; known: ${known.join(', ') || 'none'}. Add it to createRuntime({ agents }).`,
      { details: { agent: name, known } },
    );
  }

  find(name: string, version: number): RegisteredAgent | null {
    return this.#agents.get(name)?.find((agent) => agent.definition.version === version) ?? null;
  }

  all(): RegisteredAgent[] {
    return [...this.#agents.values()].flat();
  }

  /** What a claim names: versions by agent. */
  versions(): Record<string, number[]> {
    return Object.fromEntries(
      [...this.#agents].map(([name, agents]) => [name, agents.map((agent) => agent.definition.version)]),
    );
  }
}

function register(definition: AgentDefinition): RegisteredAgent {
  const children = Object.keys(childMachines(definition.machine));
  const where = `Agent '${definition.name}' version ${definition.version}`;
  if (children.length > 0) {
    throw new PawlError('CHILDREN_NOT_YET', `${where} uses the machine(s) ${children.join(', ')} as actors.`, {
      details: { agent: definition.name, children },
    });
  }
  const toolsBySrc = new Map<string, ToolDefinition>();
  const toolsByName = new Map<string, ToolDefinition>();
  const add = (tool: ToolDefinition): void => {
    const other = toolsByName.get(tool.name);
    if (other && other !== tool) {
      throw new PawlError('AGENT_INVALID', `${where} has two tools named '${tool.name}'; names must differ.`, {
        details: { agent: definition.name, tool: tool.name },
      });
    }
    toolsByName.set(tool.name, tool);
    if (tool.requires !== null) {
      throw new PawlError('APPROVALS_NOT_YET', `${where}: tool '${tool.name}' requires an approval.`, {
        details: { agent: definition.name, tool: tool.name },
      });
    }
    const undo = tool.compensate?.tool;
    if (undo !== undefined && typeof undo !== 'string') {
      const inner = toolOf(undo);
      if (inner) add(inner);
    }
  };
  for (const [src, brand] of Object.entries(definition.logic)) {
    if (brand.kind === 'decide') {
      throw new PawlError('DECISIONS_NOT_YET', `${where} invokes the decision '${brand.name}' as '${src}'.`, {
        details: { agent: definition.name, src },
      });
    }
    if (brand.kind === 'approval') {
      throw new PawlError('APPROVALS_NOT_YET', `${where} invokes the approval '${brand.name}' as '${src}'.`, {
        details: { agent: definition.name, src },
      });
    }
    const tool = brand.definition as ToolDefinition;
    toolsBySrc.set(src, tool);
    add(tool);
  }
  for (const logic of definition.tools) {
    const tool = toolOf(logic);
    if (tool) add(tool);
  }
  return {
    definition,
    toolsBySrc,
    toolsByName,
    callerEvents: definition.events.typesFrom('caller'),
    toolVersions: Object.fromEntries(
      [...toolsByName].map(([name, tool]) => [name, { version: tool.version, schemaDigest: tool.schemaDigest }]),
    ),
  };
}
