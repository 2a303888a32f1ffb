import type { WorkflowChainPackManifest } from '../../protocol/ai/packs.ts';

const NAME = 'vendor.openwop.workflow-chain-sample';
const Length = { type: 'string', enum: ['one-sentence', 'one-paragraph', 'executive-summary'] };

/** The pack whose chains conformance suites ask to be filled in. */
export const CHAIN_PACK: WorkflowChainPackManifest = {
  name: NAME,
  version: '1.0.0',
  kind: 'workflow-chain',
  description: 'Chains that sum texts up.',
  engines: { openwop: '>=1.0.0 <2.0.0' },
  chains: [
    {
      chainId: `${NAME}.summarize-text`,
      version: '1.0.0',
      label: 'Sum up a text',
      description: 'Asks a model for a summary of the text that is given.',
      parameters: {
        type: 'object',
        properties: { sourceText: { type: 'string' }, targetLength: Length, tone: { type: 'string' } },
        required: ['sourceText'],
      },
      capabilities: ['cacheable'],
      dag: {
        nodes: [
          {
            id: 'summarize-call',
            typeId: 'core.ai.callPrompt',
            config: {
              systemPrompt:
                'Give a {{params.targetLength}} summary, in a {{params.tone}} tone, of this text: {{params.sourceText}}',
            },
          },
        ],
        edges: [],
      },
    },
    {
      chainId: `${NAME}.fetch-and-summarize`,
      version: '1.0.0',
      label: 'Sum up a page',
      description: 'Fetches a page and asks a model for a summary of it.',
      parameters: {
        type: 'object',
        properties: { url: { type: 'string' }, targetLength: Length },
        required: ['url'],
      },
      capabilities: ['side-effectful'],
      dag: {
        nodes: [
          { id: 'fetch', typeId: 'core.openwop.http.fetch', config: { url: '{{params.url}}', method: 'GET' } },
          {
            id: 'summarize',
            typeId: 'core.ai.callPrompt',
            config: { systemPrompt: 'Give a {{params.targetLength}} summary of the page that you are sent.' },
          },
        ],
        edges: [{ from: 'fetch.body', to: 'summarize.sourceText' }],
      },
    },
  ],
};
