import { defineCapability } from '../capabilities/capability.ts';
import type { NodeType } from '../runtime/node-type.ts';
import type { OwnNode } from './define-node.ts';
import { nodeTypeOf } from './own-node.ts';
import { ProjectProblem } from './project-problem.ts';

/** Nodes that were defined in code, as a host mounts them. */
export type OwnNodes = ReturnType<typeof ownNodes>;

/** A capability that adds nodes of your own to a host: pass it to `startHost`. */
export function ownNodes(nodes: readonly OwnNode[]) {
  const types = nodeTypesOf(nodes);
  return defineCapability({ name: 'own-nodes', nodes: () => types, build: () => ({}) });
}

/** The node types of nodes that were defined in code; each may be defined once. */
export function nodeTypesOf(nodes: readonly OwnNode[]): readonly NodeType[] {
  const ids = nodes.map(({ typeId }) => typeId);
  const twice = nodes.find(({ typeId }, index) => ids.indexOf(typeId) !== index);
  if (twice)
    throw new ProjectProblem(`${twice.definedAt ? `${twice.definedAt}: ` : ''}${twice.typeId} is defined twice.`);
  return nodes.map(nodeTypeOf);
}
