import { defineCapability } from '../capabilities/capability.ts';
import type { OwnNode } from './define-node.ts';
import { nodeTypeOf } from './own-node.ts';

/** Nodes that were defined in code, as a host mounts them. */
export type OwnNodes = ReturnType<typeof ownNodes>;

/** A capability that adds nodes of your own to a host: pass it to `startHost`. */
export function ownNodes(nodes: readonly OwnNode[]) {
  const [twice] = nodes.map(({ typeId }) => typeId).filter((typeId, index, all) => all.indexOf(typeId) !== index);
  if (twice !== undefined) throw new TypeError(`${twice} is defined twice.`);
  const types = nodes.map(nodeTypeOf);
  return defineCapability({ name: 'own-nodes', nodes: () => types, build: () => ({}) });
}
