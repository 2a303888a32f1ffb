export { callMcpTool } from './nodes.ts';
