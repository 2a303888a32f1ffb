import type { JsonObject } from '../protocol/format/json.ts';
import type { OtherTypes } from '../runtime/catalog.ts';
import type { PredictResponse } from '../runtime/effects/model.ts';
import type { SeamDrivers } from '../runtime/effects/seams.ts';
import type { Executor } from '../runtime/executor.ts';
import type { AppendListener, HintListener } from '../runtime/hub.ts';
import type { NodeType } from '../runtime/node-type.ts';
import type { Reaction } from '../runtime/reaction.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ToolSource } from '../runtime/tools.ts';
import type { Tracing } from '../runtime/tracing.ts';
import type { WorkKind } from '../runtime/work-kind.ts';
import type { RunRef } from '../store/log.ts';
import type { Unit, Write } from '../store/sql.ts';
import type { Migration } from '../store/store.ts';
import type { BoundRoute } from './request.ts';
import type { SettingsSlice } from './settings.ts';

/** What capabilities build on: the runtime, and what all of them together contribute. */
export interface Host {
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly version: string;
  /** Everything contributed to an extension point. Complete, and callable, once the host is built. */
  extensions<T>(point: ExtensionPoint<T>): readonly T[];
  /** What every capability deletes when a run expires. */
  forgetRun(run: RunRef): Unit;
  /** Whether the discovery document advertises something, such as `aiProviders` or `host.kvStorage`. */
  advertises(capability: string): boolean;
}

/** The name under which a capability offers its service to others, with the service's interface as its type. */
export interface Door<Name extends string = string, Service = unknown> {
  readonly name: Name;
  /** Whether the capability works without the service. */
  readonly isOptional?: boolean;
  /** Carries the type only; it is never set. */
  readonly service?: Service;
}

/** Declares a door: `export const Audit = door<Audit>()('audit')`, beside the interface. */
export function door<Service>() {
  return <const Name extends string>(name: Name): Door<Name, Service> => ({ name });
}

/** A need that may be unmet because its capability is switched off. */
export function optional<Name extends string, Service>(to: Door<Name, Service>): Door<Name, Service | undefined> {
  return { name: to.name, isOptional: true };
}

type ServiceOf<D> = D extends Door<string, infer Service> ? Service : never;

/** The services behind some doors, by name. */
type Behind<Doors extends readonly Door[]> = {
  readonly [D in Doors[number] as D['name']]: ServiceOf<D>;
};

/** A place where capabilities add to what another one does, such as the sources of the inbox. */
export interface ExtensionPoint<T> {
  readonly name: string;
  of(...items: readonly T[]): Extension;
  /** The items of this point among those of all capabilities. */
  among(extensions: readonly Extension[]): readonly T[];
}

/** Items that a capability contributes to an extension point. */
export interface Extension {
  readonly point: string;
  readonly items: readonly unknown[];
}

/** Declares an extension point; the capability that reads it declares it in its `door.ts`. */
export function extensionPoint<T>(name: string): ExtensionPoint<T> {
  const contributed = new WeakSet<Extension>();
  /** Requests ask for the items again and again. The list of a host is frozen once it is built. */
  const found = new WeakMap<readonly Extension[], readonly T[]>();
  const isOwn = (extension: Extension): extension is Extension & { readonly items: readonly T[] } =>
    contributed.has(extension);
  return {
    name,
    of: (...items) => {
      const extension = { point: name, items };
      contributed.add(extension);
      return extension;
    },
    among: (extensions) => {
      const items = found.get(extensions) ?? extensions.filter(isOwn).flatMap((extension) => extension.items);
      if (Object.isFrozen(extensions)) found.set(extensions, items);
      return items;
    },
  };
}

/** What a capability adds to the host. */
export interface Contributions {
  /** Its part of the discovery document: families at the root. Called once everything is prepared. */
  readonly advertise?: () => JsonObject;
  readonly routes?: readonly BoundRoute[];
  /** Its kinds of work items, with the handler of each. */
  readonly work?: Readonly<Record<string, WorkKind>>;
  /** Writes that it adds whenever a run moves. */
  readonly reactions?: readonly Reaction[];
  /** Called with every append of this host after its commit. */
  readonly onAppend?: readonly AppendListener[];
  /** Called with hints of other hosts, by their first word. */
  readonly onHint?: Readonly<Record<string, HintListener>>;
  /** The drivers behind the effect seams that it serves. */
  readonly seams?: Partial<SeamDrivers>;
  /** The seams of preview runs. */
  readonly previewSeams?: SeamDrivers;
  /** Predicts whether a model would answer or refuse, without asking it. */
  readonly predictResponse?: PredictResponse;
  /** The implementation of node types that are not part of the host. */
  readonly otherTypes?: OtherTypes;
  /** Records traces. */
  readonly tracing?: Tracing | undefined;
  /** Tools that agents may call. */
  readonly tools?: readonly ToolSource[];
  /** Items for extension points of other capabilities. */
  readonly extensions?: readonly Extension[];
  /** Deletes what it stores about a run that has expired. */
  readonly forgetRun?: (run: RunRef) => readonly Write[];
  /** Runs once before the host listens. */
  readonly prepare?: () => Promise<void>;
  /** Runs once after the host has stopped listening, while the store is still open. */
  readonly stop?: () => Promise<void>;
  /** Runs once after the last run was released, while the store is still open: sends what is left to be sent. */
  readonly flush?: () => Promise<void>;
}

/** What `build` returns: the contributions and the service behind the capability's own door. */
export interface Built<Service = unknown> extends Contributions {
  readonly service: Service;
}

/**
 * One protocol family: its settings, tables and node types, what it needs of others, and how it is built. A capability
 * that is not mounted is neither advertised nor served.
 *
 * `Provided`, `Needed` and `Settings` are checked where the capabilities are listed: a need that no capability provides
 * does not compile.
 */
export interface Capability<
  Provided extends object = object,
  Needed extends object = never,
  Settings extends object = never,
> {
  readonly name: string;
  readonly provides?: Door | undefined;
  readonly needs: readonly Door[];
  readonly settings?: SettingsSlice<object> | undefined;
  readonly tables: readonly Migration[];
  /** Its node types; they reach the world through seams, so they need nothing to be built. */
  readonly nodes: (settings: Settings) => readonly NodeType[];
  readonly build: (host: Host, needs: Needed, settings: Settings) => Built;
  /** Carries the type only; it is never set. */
  readonly provided?: Provided;
}

interface Definition<Provides extends Door, Needs extends readonly Door[], Settings extends object> {
  readonly name: string;
  readonly provides?: Provides;
  readonly needs?: Needs;
  readonly settings?: SettingsSlice<Settings>;
  readonly tables?: readonly Migration[];
  readonly nodes?: (settings: Settings) => readonly NodeType[];
  readonly build: (
    host: Host,
    needs: Behind<Needs>,
    settings: Settings,
  ) => Contributions & { readonly service?: ServiceOf<Provides> };
}

/** Defines a capability; the types of its needs, settings and service follow from the doors and the slice. */
export function defineCapability<
  Provides extends Door = never,
  const Needs extends readonly Door[] = readonly [],
  Settings extends object = object,
>(
  definition: Definition<Provides, Needs, Settings>,
): Capability<[Provides] extends [never] ? object : Behind<readonly [Provides]>, Behind<Needs>, Settings> {
  const { name, provides, needs = [], settings, tables = [], nodes = () => [], build } = definition;
  return {
    name,
    provides,
    needs,
    settings,
    tables,
    nodes,
    build: (host, services, values) => {
      const { service, ...contributions } = build(host, services, values);
      return { service, ...contributions };
    },
  };
}
