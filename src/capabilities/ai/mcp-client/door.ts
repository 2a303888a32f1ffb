import { door } from '../../capability.ts';
import type { McpClientService } from './service.ts';

export type McpClient = McpClientService;
export const McpClient = door<McpClient>()('mcpClient');
