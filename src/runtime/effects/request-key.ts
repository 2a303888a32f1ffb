import { canonicalJson, defined } from '../../protocol/format/json.ts';
import { sha256Hex } from '../../system/digest.ts';
import type { ProviderQuestion } from './model.ts';

const RECIPE = 'openwop-semantic-request-v2';

/** What a question means, apart from how it is sent and for whom. */
interface SemanticRequest {
  readonly provider: string;
  readonly model: string;
  readonly request: {
    readonly messages: readonly unknown[];
    readonly tools?: readonly { readonly name: string }[] | undefined;
    readonly [option: string]: unknown;
  };
  /** Options that only one provider has: `vendor.<provider>.<option>`. */
  readonly providerOptions?: Readonly<Record<string, unknown>> | undefined;
}

/** The key by which answers are cached (RFC 0041, RFC 0150): equal questions have equal keys on every host. */
export function requestKey({ provider, model, request, providerOptions }: SemanticRequest): string {
  const { tools = [], ...rest } = request;
  const sorted = [...tools].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  const meant = { ...rest, ...(sorted.length > 0 ? { tools: sorted } : {}) };
  return sha256Hex(canonicalJson(defined({ recipe: RECIPE, provider, model, request: meant, providerOptions })));
}

/** The key of a question to a model. */
export function keyOfQuestion(provider: string, question: ProviderQuestion): string {
  const { model, messages, tools, temperature, outputSchema, maxTokens, stopSequences, toolChoice } = question;
  const options = defined({
    tools,
    temperature,
    responseFormat: outputSchema && { type: 'json_schema', schema: outputSchema },
    maxOutputTokens: maxTokens,
    stop: stopSequences,
  });
  const providerOptions = toolChoice && { [`vendor.${provider}.toolChoice`]: toolChoice };
  return requestKey({ provider, model, request: { messages, ...options }, providerOptions });
}
