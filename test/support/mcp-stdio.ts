import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { testTools } from './mcp-tools.ts';

/** A program that is an MCP server. */
serveStdio(() => testTools());
