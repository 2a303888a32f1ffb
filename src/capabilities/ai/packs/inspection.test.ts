import { describe, expect, it } from 'vitest';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { inspectPack } from './inspection.ts';

const CHAIN = {
  chainId: 'vendor.acme.greet',
  label: 'Greet',
  description: 'Greets somebody',
  version: '1.0.0',
  dag: { nodes: [{ id: 'n', typeId: 'core.noop' }] },
  parameters: { type: 'object' },
};
const AGENT = { agentId: 'vendor.acme.triage', persona: 'Triage', modelClass: 'classification', systemPrompt: 'Sort.' };
const PACK = { name: 'vendor.acme.greetings', version: '1.0.0', engines: { openwop: '>=1.0.0 <2.0.0' } };
const DECLARATIVE = { runtime: { language: 'remote', entry: 'pack.json' } };

/** Inspects a pack whose agents refer to one file. */
function inspected(manifest: object, text?: string) {
  const pack = {
    file: JSON.stringify({ ...PACK, ...manifest }),
    files: () => text,
    origin: { source: 'file' as const },
  };
  return inspectPack(pack, localSchemaValidator());
}

describe('the JSON Schemas of a pack', () => {
  const ofChain = (parameters: object) => inspected({ kind: 'workflow-chain', chains: [{ ...CHAIN, parameters }] });
  const ofAgent = (text: string) =>
    inspected({ ...DECLARATIVE, agents: [{ ...AGENT, handoff: { taskSchemaRef: 'task.json' } }] }, text);

  it('are accepted if they are valid', async () => {
    expect(await ofChain({ type: 'object' })).toHaveProperty('digest');
    expect(await ofAgent('{"type":"object"}')).toHaveProperty('digest');
  });

  it('are named if they are not', async () => {
    expect(await ofChain({ type: 'poem' })).toMatchObject({
      refused: 'invalid_manifest',
      details: { path: '/chains/0/parameters' },
    });
    expect(await ofAgent('{"type":"nothing"}')).toMatchObject({
      refused: 'invalid_manifest',
      details: { path: '/agents/0/handoff/taskSchemaRef' },
    });
  });
});
