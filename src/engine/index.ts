/** The engine for programs that inspect runs without a host. It is pure, so it also runs in a browser. */
export { checkDefinition, type NodeCatalog, type Problem } from './definition/check.ts';
export { makePlan, type Plan } from './definition/plan.ts';
export { cancelRun, pauseRun, resumeRun } from './run/commands.ts';
export type { Decision } from './run/decision.ts';
export { apply, fold } from './run/fold.ts';
export { dueAt, next, type Step } from './run/next.ts';
export { emptyRun, isTerminal, type Run, type RunFacts, statusOf } from './run/run.ts';
export { snapshotOf } from './run/snapshot.ts';
