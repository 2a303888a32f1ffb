import { type Static, Type } from 'typebox';
import { Closed, MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { type Environment, readOperatorList, unsetReference } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

const Optional = Type.Optional;
const Dollars = Type.Number({ minimum: 0 });

const Entry = Closed({
  provider: Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,63}$' }),
  kind: OneOf(['openai-compatible', 'anthropic', 'google', 'scripted']),
  baseUrl: Optional(Type.String({ pattern: '^https?://' })),
  credentialRef: Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
  script: Optional(NonEmpty),
  models: Type.Array(NonEmpty, { minItems: 1, uniqueItems: true }),
  prices: Optional(MapOf(Closed({ input: Dollars, output: Dollars }))),
  timeoutMs: Optional(Type.Integer({ minimum: 1_000, maximum: 3_600_000 })),
});
type Entry = Static<typeof Entry>;

const TIMEOUT_MS = 120_000;
/** The name of the provider that conformance suites program. */
const RESERVED = 'mock';

/** A model provider as the operator configured it. */
export interface ModelSettings {
  readonly provider: string;
  readonly kind: 'openai-compatible' | 'anthropic' | 'google' | 'scripted';
  readonly baseUrl?: string | undefined;
  /** The environment variable that holds the secret. The name may be shown, the secret never. */
  readonly credentialRef?: string | undefined;
  readonly secret?: string | undefined;
  /** The file with the answers of a scripted provider. */
  readonly script?: string | undefined;
  readonly models: readonly string[];
  /** Dollars per million tokens, by model. */
  readonly prices: Readonly<Record<string, { readonly input: number; readonly output: number }>>;
  readonly timeoutMs: number;
}

/** Reads the configured providers, with their secrets from the environment. */
export function readModels(
  text: string,
  environment: Environment,
): { readonly models: readonly ModelSettings[]; readonly problems: readonly string[] } {
  const check = (entry: Entry): string[] => problemsOf(entry, environment);
  const { entries, problems } = readOperatorList<Entry>(text, {
    schema: Entry,
    unique: { what: 'provider', name: 'provider' },
    check,
  });
  return { models: entries.map((entry) => settingsOf(entry, environment)), problems };
}

function problemsOf(entry: Entry, environment: Environment): string[] {
  const { provider, kind, baseUrl, script, credentialRef, models, prices = {} } = entry;
  const unpriced = Object.keys(prices).find((model) => !models.includes(model));
  return [
    ...(provider === RESERVED ? ['.provider must not be mock: conformance suites use that name.'] : []),
    ...(kind === 'scripted' && script === undefined ? ['.script must name a JSON file.'] : []),
    ...(kind === 'openai-compatible' && baseUrl === undefined ? ['.baseUrl must be a URL.'] : []),
    ...(needsKey(kind) && credentialRef === undefined ? ['.credentialRef must name an environment variable.'] : []),
    ...unsetReference(environment, credentialRef),
    ...(unpriced === undefined ? [] : ['.prices has a model that is not in models.']),
  ];
}

/** Whether every provider of this kind needs an API key. */
function needsKey(kind: Entry['kind']): boolean {
  return kind === 'anthropic' || kind === 'google';
}

function settingsOf(entry: Entry, environment: Environment): ModelSettings {
  const { credentialRef, prices = {}, timeoutMs = TIMEOUT_MS, ...rest } = entry;
  const secret = credentialRef === undefined ? undefined : environment[credentialRef];
  return { ...rest, credentialRef, secret, prices, timeoutMs };
}

/** The configured model providers; the first is asked when a node names none. */
export const modelSettings = defineSettings({
  variables: {
    models: {
      variable: 'CAPSTAN_MODELS',
      meaning:
        'JSON array of model providers: { provider, kind, baseUrl?, credentialRef?, script?, models, prices?, timeoutMs? }',
    },
  },
  read: (read) => {
    const { models, problems } = readModels(read.text('models') ?? '[]', read.environment);
    read.report('models', ...problems);
    return { models };
  },
});
