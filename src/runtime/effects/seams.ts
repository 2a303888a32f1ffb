import type { JsonObject } from '../../protocol/json.ts';
import type { ModelRequest, ModelResult } from './model.ts';

interface Seam {
  /** What lies behind it. */
  readonly kind: string;
  /** What keeps a replay from reaching through it. */
  readonly guardedBy: 'replayGuard';
}

/** Every way out of the process. Nodes are given exactly these, and replay guards exactly these. */
export const SEAMS = {
  model: { kind: 'provider-sdk', guardedBy: 'replayGuard' },
  probe: { kind: 'database', guardedBy: 'replayGuard' },
} as const satisfies Record<string, Seam>;

export type SeamName = keyof typeof SEAMS;

/** What each seam takes and gives. */
export interface SeamShapes {
  model: { request: ModelRequest; result: ModelResult };
  probe: { request: JsonObject; result: { readonly effectId: string } };
}

/** The seams as a node calls them. A call that was made before, by an attempt that was cut short, gives its result. */
export type Effects = {
  readonly [S in SeamName]: (request: SeamShapes[S]['request']) => Promise<SeamShapes[S]['result']>;
};

/** What it takes to go through a seam. */
export interface Firing {
  /** The same for every attempt at this effect: the key by which the other side can tell a repeat. */
  readonly effectId: string;
  readonly signal: AbortSignal;
  readonly tenant: string;
  readonly runId: string;
}

export type SeamDrivers = {
  readonly [S in SeamName]: (request: SeamShapes[S]['request'], firing: Firing) => Promise<SeamShapes[S]['result']>;
};
