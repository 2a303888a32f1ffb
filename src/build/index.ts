/** What programs and projects are built with: nodes and workflows of your own, and hosts that run them. */
export { Type } from 'typebox';
export type { AuthoredWorkflow } from '../protocol/running/workflows.ts';
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
export { defineProject, type Project, type ProjectDefinition } from './define-project.ts';
export { defineWorkflow, type WorkflowHead } from './define-workflow.ts';
export type { After, Flow, ForEachOptions, StepSettings, SubWorkflowOptions } from './flow.ts';
export { cel, ended, ifFailed, Step, Transition, Value, Variable, when } from './flow-values.ts';
export { loadProject } from './load-project.ts';
export type { NodeException } from './node-exception.ts';
export { type OwnNodes, ownNodes } from './own-nodes.ts';
export { ownProject } from './own-project.ts';
export type { OwnWorkflow } from './own-workflow.ts';
export { ProjectProblem } from './project-problem.ts';
export { type TestedRun, type TestOptions, testWorkflow } from './test-workflow.ts';
export type { StandardSchema, ValueOf, ValueSchema } from './value-schema.ts';
export { runWorker, type WorkerOptions } from './worker.ts';
