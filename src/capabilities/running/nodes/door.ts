/** The parts of the standard node types that node types of other capabilities are made of. */
export { identity, noop } from './basic.ts';
export { delay } from './delay.ts';
export { pickVariables } from './sub-workflow.ts';
