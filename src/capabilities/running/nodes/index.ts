import { defineCapability } from '../../capability.ts';
import { NODES } from './standard.ts';

/** The protocol's standard node types: flow, data, text, time and sub-workflows. */
export const standardNodes = defineCapability({ name: 'nodes', nodes: () => NODES, build: () => ({}) });
