import { ENVELOPE_SCHEMA_VERSION, type EnvelopeContract } from '../../../protocol/ai/envelopes.ts';

/** What the model of a node with a contract is told about envelopes. */
export function instructions({ accepts }: EnvelopeContract, nodeId: string): string {
  const example = {
    type: 'clarification.request',
    schemaVersion: ENVELOPE_SCHEMA_VERSION,
    envelopeId: 'a new id',
    correlationId: 'another new id, kept when you send the same envelope again',
    nodeId: nodeId.slice(0, 128),
    payload: { questions: [{ id: 'q1', question: 'What you need to know' }] },
    meta: { source: 'ai-generation', ts: 'the time in ISO 8601' },
  };
  return [
    'Instead of an answer you may send one envelope, as JSON and nothing else.',
    `Ask a person what you need to know with a clarification.request: ${JSON.stringify(example)}`,
    'If you cannot do what is asked, send an envelope of type error with the payload {"code":"…","message":"…"}.',
    ...(accepts.length > 0
      ? [
          `You may also send envelopes of these types: ${accepts.join(', ')}.`,
          'The payload {"envelopeType":"…"} in an envelope of type schema.request gets you the JSON Schema of one.',
        ]
      : []),
  ].join('\n');
}
