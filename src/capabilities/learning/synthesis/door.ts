export { versionAfter } from './pack-identity.ts';
export { nodesAlong } from './paths.ts';
