/** What programs and projects are built with: nodes of your own, and hosts that run them. */
export { Type } from 'typebox';
export {
  type ChildOutcome,
  defineNode,
  type EffectCall,
  fatal,
  type NodeCall,
  type NodeDefinition,
  type OwnNode,
  type PureCall,
  type Question,
  retryable,
  type Safety,
} from './define-node.ts';
export { type OwnNodes, ownNodes } from './own-nodes.ts';
export type { StandardSchema, ValueOf, ValueSchema } from './value-schema.ts';
export { runWorker, type WorkerOptions } from './worker.ts';
