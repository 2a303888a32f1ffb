import type { JsonObject } from '../protocol/format/json.ts';
import type { OtherTypes } from '../runtime/catalog.ts';
import type { RuntimeContributions } from '../runtime/create-runtime.ts';
import type { PredictResponse } from '../runtime/effects/model.ts';
import type { SeamDrivers } from '../runtime/effects/seams.ts';
import type { AppendListener, HintListener } from '../runtime/hub.ts';
import type { Reaction } from '../runtime/reaction.ts';
import type { ToolSource } from '../runtime/tools.ts';
import type { Tracing } from '../runtime/tracing.ts';
import { combine, isAdvertised } from './advertising.ts';
import type { Built, Capability, Contributions, Extension, Host } from './capability.ts';

/** Capabilities of which each gets its needs and settings from the objects that the host passes. */
export type Mountable<Services extends object, Settings extends object> = Capability<object, Services, Settings>;

/** Everything that the mounted capabilities contribute, collected once. */
export interface Assembly<Services> {
  /** The services by the names of their doors. */
  readonly services: Services;
  /** In the order of the list of capabilities. */
  readonly parts: readonly Contributions[];
}

interface Collected extends RuntimeContributions {
  readonly parts: readonly Contributions[];
  readonly extensions: readonly Extension[];
}

/** What all capabilities contribute. It is passed to them while they are built, and usable once `complete` was called. */
export class ContributionView implements Pick<Host, 'extensions' | 'forgetRun' | 'advertises'>, RuntimeContributions {
  #collected: Collected | undefined;

  /** Called once, when every capability is built. */
  complete(parts: readonly Contributions[]): void {
    if (this.#collected) throw new Error('the host is built already');
    this.#collected = Object.freeze({
      parts,
      extensions: Object.freeze(parts.flatMap(({ extensions = [] }) => extensions)),
      // `onAppend` and `reactions` are not frozen: every append iterates over both, and V8 is slow at that.
      onAppend: parts.flatMap(({ onAppend = [] }) => onAppend),
      onHint: new Map(parts.flatMap(({ onHint = {} }) => Object.entries(onHint))),
      reactions: parts.flatMap(({ reactions = [] }) => reactions),
      seams: Object.freeze(Object.assign({}, ...parts.map(({ seams = {} }) => seams)) as Partial<SeamDrivers>),
      previewSeams: parts.find((part) => part.previewSeams)?.previewSeams,
      tools: Object.freeze(parts.flatMap(({ tools = [] }) => tools)),
      predictResponse: parts.find((part) => part.predictResponse)?.predictResponse ?? (() => undefined),
      otherTypes: parts.find((part) => part.otherTypes)?.otherTypes ?? (() => undefined),
      tracing: parts.find((part) => part.tracing)?.tracing,
    });
  }

  get parts(): readonly Contributions[] {
    return this.#all.parts;
  }

  get onAppend(): readonly AppendListener[] {
    return this.#all.onAppend;
  }

  get onHint(): ReadonlyMap<string, HintListener> {
    return this.#all.onHint;
  }

  get reactions(): readonly Reaction[] {
    return this.#all.reactions;
  }

  get seams(): Partial<SeamDrivers> {
    return this.#all.seams;
  }

  get previewSeams(): SeamDrivers | undefined {
    return this.#all.previewSeams;
  }

  get tools(): readonly ToolSource[] {
    return this.#all.tools;
  }

  get predictResponse(): PredictResponse {
    return this.#all.predictResponse;
  }

  get otherTypes(): OtherTypes {
    return this.#all.otherTypes;
  }

  get tracing(): Tracing | undefined {
    return this.#all.tracing;
  }

  get #all(): Collected {
    if (this.#collected) return this.#collected;
    throw new Error('a capability asked for contributions of others while the host was being built');
  }

  readonly extensions: Host['extensions'] = (point) => point.among(this.#all.extensions);
  readonly forgetRun: Host['forgetRun'] = (run) => this.parts.flatMap((part) => part.forgetRun?.(run) ?? []);
  readonly advertises: Host['advertises'] = (capability) => isAdvertised(this.families(), capability);

  /** The families of the discovery document, as they are now. */
  families(): JsonObject {
    return this.parts.map((part) => part.advertise?.() ?? {}).reduce<JsonObject>(combine, {});
  }
}

/**
 * Builds capabilities, each after those that it needs, otherwise in the order of the list. `given` are services that
 * exist already; tests use it to build a few capabilities alone.
 */
export function buildCapabilities<Services extends object, Settings extends object>(
  mounted: readonly Mountable<Services, Settings>[],
  host: Host,
  settings: Settings,
  given: Partial<Services> = {},
): Assembly<Services> {
  const services: Record<string, unknown> = { ...given };
  const built = new Map<Mountable<Services, Settings>, Built>();
  for (const capability of inOrderOfNeeds(mounted, Object.keys(given))) {
    // The order guarantees that every need is there by now; the list of capabilities checks the types.
    const its = capability.build(host, services as Services, settings);
    if (capability.provides) services[capability.provides.name] = its.service;
    built.set(capability, its);
  }
  const parts = mounted.map((capability) => built.get(capability)!);
  return Object.freeze({ services: Object.freeze(services) as Services, parts: Object.freeze(parts) });
}

/** Throws an error that names the capability whose need is missing or circular. */
export function inOrderOfNeeds<C extends Pick<Capability, 'name' | 'needs' | 'provides'>>(
  mounted: readonly C[],
  given: readonly string[] = [],
): C[] {
  const providers = new Map(mounted.flatMap((each) => (each.provides ? [[each.provides.name, each] as const] : [])));
  const ordered = new Set<C>();
  const visit = (capability: C, path: readonly string[]): void => {
    if (ordered.has(capability)) return;
    const chain = [...path, capability.name];
    if (path.includes(capability.name)) throw new Error(`capabilities need each other: ${chain.join(' → ')}`);
    for (const { name, isOptional } of capability.needs) {
      const provider = given.includes(name) ? undefined : providers.get(name);
      if (provider) visit(provider, chain);
      else if (!given.includes(name) && !isOptional) {
        throw new Error(`the capability ${capability.name} needs ${name}, which no mounted capability provides`);
      }
    }
    ordered.add(capability);
  };
  for (const capability of mounted) visit(capability, []);
  return [...ordered];
}
