export { delay } from './delay.ts';
export { pick } from './sub-workflow.ts';
