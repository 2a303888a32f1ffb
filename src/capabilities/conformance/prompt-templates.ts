import type { PromptTemplate } from '../../protocol/ai/prompts.ts';

function template(
  name: string,
  kind: PromptTemplate['kind'],
  text: string,
  more: Partial<PromptTemplate> = {},
): PromptTemplate {
  return { templateId: `conformance.prompt.${name}`, version: '1.0.0', kind, text, tags: ['conformance'], ...more };
}

const WRITING = { modelHints: { modelClass: 'writing' } };

/** The prompt templates that conformance suites refer to by name. */
export const PROMPT_TEMPLATES: readonly PromptTemplate[] = [
  template('writer-system', 'system', 'You write plainly and claim nothing that you do not know.', WRITING),
  template('writer-user', 'user', 'Write a short paragraph about a subject of your choice.', WRITING),
  template(
    'schema-hint',
    'schema-hint',
    'Answer with one JSON object that has the members title and body, both texts.',
  ),
  template('few-shot', 'few-shot', 'Question: What is a capstan?\nAnswer: A winch that turns about an upright axis.'),
  template('few-shot-2', 'few-shot', 'Question: What is a hawser?\nAnswer: A thick rope for mooring or towing.'),
  template('secret-redaction', 'user', 'Sign in with {{apiKey}}, then sum up what you find.', {
    variables: [{ name: 'apiKey', type: 'string', required: true, source: 'secret' }],
  }),
  template('trust-marker', 'user', 'Somebody sent this: {{userPayload}}\nSay in one sentence what it is about.', {
    variables: [{ name: 'userPayload', type: 'string', required: true, source: 'input' }],
  }),
];
