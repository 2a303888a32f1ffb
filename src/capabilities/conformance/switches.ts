import { type Refusal, refuse } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { isObject } from '../../protocol/format/json.ts';

/** Where each capability that suites may switch off is used: the node type, and the members of its config. */
const USES: Readonly<Record<string, { readonly typeId: string; readonly members: readonly string[] }>> = {
  'agents.dispatchMapping': {
    typeId: 'core.dispatch',
    members: ['inputMapping', 'outputMapping', 'perWorkerInputMappings', 'perWorkerOutputMappings'],
  },
  'subWorkflow.inputMapping': { typeId: 'core.subWorkflow', members: ['inputMapping'] },
};

/** The capabilities that suites may switch off. */
export const SWITCHABLE: readonly string[] = Object.keys(USES);

/** A node, as far as it matters here. */
interface Using {
  readonly typeId: string;
  readonly config?: JsonObject;
}

/** Capabilities that a suite has switched off or on, for its own tenant and in memory only. */
export class Switches {
  readonly #set = new Map<string, Map<string, boolean>>();

  /** What is switched, by the name of the capability. */
  of(tenant: string): Record<string, boolean> {
    return Object.fromEntries(this.#set.get(tenant) ?? []);
  }

  /** Switches a capability; null leaves it as it is advertised. */
  turn(tenant: string, name: string, value: boolean | null): void {
    const set = this.#set.get(tenant) ?? new Map<string, boolean>();
    if (value === null) set.delete(name);
    else set.set(name, value);
    this.#set.set(tenant, set);
  }

  reset(tenant: string): void {
    this.#set.delete(tenant);
  }

  /** Refuses a workflow that uses what is switched off. */
  check(tenant: string, nodes: readonly Using[]): Refusal | undefined {
    const off = SWITCHABLE.filter((name) => this.#set.get(tenant)?.get(name) === false);
    const requiredCapability = off.find((name) => nodes.some((node) => isUsing(node, USES[name]!)));
    if (requiredCapability === undefined) return undefined;
    const message = `The workflow needs ${requiredCapability}, which this host does not provide.`;
    return refuse('validation_error', message, { requiredCapability });
  }
}

function isUsing({ typeId, config = {} }: Using, use: (typeof USES)[string]): boolean {
  const isFilled = (value: unknown): boolean => isObject(value) && Object.keys(value).length > 0;
  return typeId === use.typeId && use.members.some((member) => isFilled(config[member]));
}
