import { type JsonObject, own } from '../../protocol/format/json.ts';
import type { ChannelDeclaration } from '../../protocol/running/workflows.ts';
import { copied } from './channels.ts';
import type { Run } from './run.ts';

/** Whether the workflow declares a channel of this name. */
export function isDeclaredChannel(run: Run, name: string): boolean {
  return declaredChannel(run, name) !== undefined;
}

/** What `visibleVariables` has found, until a variable or a channel changes: many conditions ask for it at once. */
const visibleOf = new WeakMap<Run, JsonObject>();

/** To be called when a variable or a channel has changed. */
export function forgetVisible(run: Run): void {
  visibleOf.delete(run);
}

/** The variables, and the state of undeclared channels, which readers access like variables. */
export function visibleVariables(run: Run): JsonObject {
  if (run.channels.size === 0) return run.variables;
  const known = visibleOf.get(run);
  if (known) return known;
  const visible = collectVisible(run);
  visibleOf.set(run, visible);
  return visible;
}

function collectVisible(run: Run): JsonObject {
  const loose = [...run.channels].filter(([name]) => !isDeclaredChannel(run, name));
  if (loose.length === 0) return run.variables;
  const visible = Object.assign(Object.create(null) as JsonObject, run.variables);
  for (const [name] of loose) visible[name] = channelState(run, name);
  return visible;
}

/** A copy of the state of a channel, because the fold keeps changing its own. */
export function channelState(run: Run, name: string): unknown {
  return copied(run.channels.get(name));
}

/** The declaration of a channel, if the workflow has one. */
export function declaredChannel(run: Run, name: string): ChannelDeclaration | undefined {
  return own(run.plan.definition.channels, name);
}
