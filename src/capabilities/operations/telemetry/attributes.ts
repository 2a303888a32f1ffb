import type { JsonObject } from '../../../protocol/format/json.ts';
import { redactText } from '../../../system/redaction.ts';

/** Every attribute that may leave the host. What is not listed is dropped, whoever added it. */
const ALLOWED: ReadonlySet<string> = new Set([
  'openwop.run_id',
  'openwop.workflow_id',
  'openwop.protocol_version',
  'openwop.tenant_id',
  'openwop.scope_id',
  'openwop.node_id',
  'openwop.node_type',
  'openwop.node_attempt',
  'openwop.event_seq',
  'openwop.event_type',
  'openwop.interrupt_kind',
  'openwop.interrupt_id',
  'openwop.interrupt_count',
  'openwop.cap_kind',
  'openwop.cap_limit',
  'openwop.cap_observed',
  'openwop.replay.source_run_id',
  'openwop.replay.from_seq',
  'openwop.replay.mode',
  'openwop.replay.diverged',
  'openwop.parent.run_id',
  'openwop.parent.workflow_id',
  'openwop.parent.node_id',
  'openwop.pii_present',
  'openwop.compliance_class',
  'openwop.cost.tokens.input',
  'openwop.cost.tokens.output',
  'openwop.cost.tokens.total',
  'openwop.cost.usd',
  'openwop.cost.currency',
  'openwop.cost.estimated',
  'openwop.cost.provider',
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.finish_reasons',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
  'gen_ai.tool.name',
  'mcp.method.name',
  'http.request.method',
  'http.response.status_code',
  'server.address',
  'server.port',
  'error.type',
]);
const CHARACTERS_MAX = 256;

/** The attributes that may be shown: listed ones with flat values, and texts without what looks like a secret. */
export function allowedAttributes(attributes: JsonObject): JsonObject {
  const shown: JsonObject = {};
  for (const [name, value] of Object.entries(attributes)) {
    const flat = ALLOWED.has(name) ? flatValue(value) : undefined;
    if (flat !== undefined) shown[name] = flat;
  }
  return shown;
}

function flatValue(value: unknown): unknown {
  if (typeof value === 'string') return shownText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.map(flatValue);
  return undefined;
}

/** A text that may leave the host: without what looks like a secret, and not longer than a name. */
export function shownText(text: string): string {
  return redactText(text).slice(0, CHARACTERS_MAX);
}
