import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '../../src/protocol/format/json.ts';

const PUBLISHED = fileURLToPath(new URL('../../../shared/openwop/fixtures/', import.meta.url));

/** The fixtures that the protocol publishes, where they lie beside the repository; else nothing. */
export function publicFixtures(folder: '' | 'prompt-templates/' = ''): readonly JsonObject[] {
  if (!existsSync(PUBLISHED)) return [];
  const names = readdirSync(PUBLISHED + folder).filter((name) => name.endsWith('.json'));
  return names.map((name) => JSON.parse(readFileSync(PUBLISHED + folder + name, 'utf8')) as JsonObject);
}

/**
 * The public fixtures of families that this host does not serve. It must not advertise them; the reason is the family
 * that each would take.
 */
export const NOT_SERVED: Readonly<Record<string, string>> = {
  'conformance-a2a-task-roundtrip': 'a2a',
  'conformance-agent-channel-dispatch': 'agents.deployment',
  'conformance-agent-pack-export': 'agents of a workspace, without a pack',
  'conformance-conversation-capability-negotiation': 'conversationPrimitive',
  'conformance-conversation-lifecycle': 'conversationPrimitive',
  'conformance-conversation-replay': 'conversationPrimitive',
  'conformance-conversation-vs-clarification': 'conversationPrimitive',
  'conformance-envelope-nl-to-format-engaged': 'the event envelope.nlToFormat.engaged',
  'conformance-wasm-pack-memory-cap-breach': 'nodePackRuntimes.wasm',
  'conformance-wasm-pack-roundtrip': 'nodePackRuntimes.wasm',
};
