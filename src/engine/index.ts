/** What a run means, for programs that look at runs without a host: pure, and at home in a browser. */
export { checkDefinition, type NodeCatalog, type Problem } from './check.ts';
export { cancelRun, type Decision, pauseRun, resumeRun } from './commands.ts';
export { apply, fold } from './fold.ts';
export { dueAt, next, type Step } from './next.ts';
export { makePlan, type Plan } from './plan.ts';
export { emptyRun, isTerminal, type Run, type RunFacts, statusOf } from './run.ts';
export { snapshotOf } from './snapshot.ts';
