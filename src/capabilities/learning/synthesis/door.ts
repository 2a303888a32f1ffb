export { nodesAlong } from './paths.ts';
