import type { SchemaAt } from '../../../engine/definition/check.ts';
import type { Agent, AgentManifest } from '../../../protocol/ai/agents.ts';
import type { AgentPackManifest } from '../../../protocol/ai/packs.ts';
import { canonicalJson, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { findSecret } from '../../../system/redaction.ts';
import type { PackFiles } from './door.ts';
import { type Misfit, peersOf } from './rules.ts';

const PROMPT_CHARACTERS_MAX = 65_536;

/** Reads the agents of a pack with the files that they refer to, or lists every problem. */
export function resolveAgents(
  manifest: AgentPackManifest,
  files: PackFiles,
): { readonly agents: readonly Agent[] } | { readonly misfits: readonly Misfit[] } {
  const read = manifest.agents.map((agent, index) => new AgentReader(agent, `/agents/${index}`, files).read(manifest));
  const misfits = read.flatMap((agent) => agent.misfits);
  return misfits.length > 0 ? { misfits } : { agents: read.map(({ agent }) => agent) };
}

/** The JSON Schemas of agents that were read, and where their manifests name them. */
export function agentSchemas(agents: readonly Agent[]): SchemaAt[] {
  return agents.flatMap(({ taskSchema, returnSchema }, index) => [
    ...(taskSchema ? [{ path: `/agents/${index}/handoff/taskSchemaRef`, schema: taskSchema }] : []),
    ...(returnSchema ? [{ path: `/agents/${index}/handoff/returnSchemaRef`, schema: returnSchema }] : []),
  ]);
}

/** Digest of a version's content: of `pack.json` alone, unless agents refer to other files. */
export function digestOf(file: string, agents: readonly Agent[]): string {
  return sha256Hex(refersToFiles(agents) ? `${file}\n${canonicalJson(agents)}` : file);
}

/** Whether a part of the agents is in files other than `pack.json`. */
export function refersToFiles(agents: readonly Agent[]): boolean {
  return agents.some(({ manifest }) => manifest.systemPromptRef || manifest.handoff);
}

class AgentReader {
  readonly misfits: Misfit[] = [];
  readonly #manifest: AgentManifest;
  readonly #path: string;
  readonly #files: PackFiles;

  constructor(manifest: AgentManifest, path: string, files: PackFiles) {
    this.#manifest = manifest;
    this.#path = path;
    this.#files = files;
  }

  read(pack: AgentPackManifest): { readonly agent: Agent; readonly misfits: readonly Misfit[] } {
    const { handoff = {} } = this.#manifest;
    this.#checkName(pack.name);
    this.#checkRole();
    const systemPrompt = this.#prompt();
    const taskSchema = this.#schema('taskSchemaRef', handoff.taskSchemaRef);
    const returnSchema = this.#schema('returnSchemaRef', handoff.returnSchemaRef);
    const peers = peersOf(pack).flatMap(({ capability, isOptional }) => (isOptional ? [capability] : []));
    const agent: Agent = {
      manifest: this.#manifest,
      systemPrompt,
      ...(peers.length > 0 ? { peers } : {}),
      ...(taskSchema ? { taskSchema } : {}),
      ...(returnSchema ? { returnSchema } : {}),
    };
    const secret = findSecret(agent);
    if (secret !== undefined) this.#misfit('', 'contains something that looks like a secret');
    return { agent, misfits: this.misfits };
  }

  #misfit(member: string, message: string): void {
    this.misfits.push({ path: `${this.#path}${member}`, message });
  }

  /** Agent ids begin with the organisation of the pack, so that nobody can impersonate another's agent. */
  #checkName(packName: string): void {
    const [tier, organisation] = packName.split('.');
    if (!this.#manifest.agentId.startsWith(`${tier}.${organisation}.`)) {
      this.#misfit('/agentId', `must begin with ${tier}.${organisation}, like the name of the pack`);
    }
  }

  #checkRole(): void {
    const { role, handoff, memoryShape = {} } = this.#manifest;
    if (role !== 'skill') return;
    if (!handoff) this.#misfit('/handoff', 'is missing: a skill must declare its task and return schemas');
    if (memoryShape.conversation || memoryShape.longTerm) {
      this.#misfit('/memoryShape', 'must not keep conversation or long-term memory: a skill has none');
    }
  }

  #prompt(): string {
    const { systemPrompt, systemPromptRef } = this.#manifest;
    if ((systemPrompt === undefined) === (systemPromptRef === undefined)) {
      this.#misfit('', 'must have one of systemPrompt and systemPromptRef');
      return '';
    }
    const text = systemPrompt ?? this.#file('/systemPromptRef', systemPromptRef!) ?? '';
    if (text.length > PROMPT_CHARACTERS_MAX) {
      this.#misfit('', `has a prompt with more than ${PROMPT_CHARACTERS_MAX} characters`);
    }
    return text;
  }

  #schema(member: string, ref: string | undefined): JsonObject | undefined {
    const text = ref === undefined ? undefined : this.#file(`/handoff/${member}`, ref);
    if (text === undefined) return undefined;
    const schema = jsonIn(text);
    if (isObject(schema)) return schema;
    this.#misfit(`/handoff/${member}`, 'does not name a JSON Schema: it is not an object');
    return undefined;
  }

  #file(member: string, path: string): string | undefined {
    const isInside = !path.startsWith('/') && !path.includes('\\') && !path.split('/').includes('..');
    if (!isInside) this.#misfit(member, 'points outside the pack');
    const text = isInside ? this.#files(path.replace(/^\.\//, '')) : undefined;
    if (isInside && text === undefined) this.#misfit(member, `names ${path}, which is not a text file of this pack`);
    return text;
  }
}

function jsonIn(text: string): unknown {
  try {
    return parseJson(text, 'file');
  } catch (error) {
    if (error instanceof BadJson) return undefined;
    throw error;
  }
}
