import { type McpServerSettings, readMcpServers } from '../capabilities/ai/mcp-client/service.ts';
import { readModels } from '../capabilities/ai/models/service.ts';
import type { ModelSettings } from '../capabilities/capability.ts';
import { type MailSettings, readMail } from '../capabilities/integrations/email/service.ts';
import { type Credential, readCredentials } from '../capabilities/integrations/http-client/service.ts';
import type { Reader } from './reader.ts';
import type { Environment } from './settings.ts';

/** Reads the model providers; their secrets come from the environment variables that they name. */
export function modelsOf(read: Reader, environment: Environment): readonly ModelSettings[] {
  const { models, problems } = readModels(read.text('models') ?? '[]', environment);
  read.addProblem('models', ...problems);
  return models;
}

/** Reads the MCP servers whose tools agents may use. */
export function mcpServersOf(read: Reader, environment: Environment): readonly McpServerSettings[] {
  const { servers, problems } = readMcpServers(read.text('mcpServers') ?? '[]', environment);
  read.addProblem('mcpServers', ...problems);
  return servers;
}

/** Reads the credentials that HTTP nodes may use by name. */
export function credentialsOf(read: Reader, environment: Environment): readonly Credential[] {
  const { credentials, problems } = readCredentials(read.text('credentials') ?? '[]', environment);
  read.addProblem('credentials', ...problems);
  return credentials;
}

/** Reads the mail server and the allowed senders; undefined when mail is not configured. */
export function mailOf(read: Reader): MailSettings | undefined {
  const { mail, problem } = readMail(read.text('smtpUrl'), read.text('smtpSenders'));
  if (problem === 'url') read.addProblem('smtpUrl', ' must be a URL that starts with smtp:// or smtps://.');
  if (problem === 'senders') {
    read.addProblem('smtpSenders', ' must list the allowed sender addresses, or domains such as @example.com.');
  }
  return mail;
}
