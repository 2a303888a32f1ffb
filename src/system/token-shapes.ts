/** The shapes of well-known tokens, which redaction recognizes wherever they appear. */

/** By issuer, how a token begins and how it continues. */
export type Tokens = Record<string, [beginning: RegExp, rest: RegExp]>;

/** Tokens with a recognizable prefix that ends in punctuation, followed by characters that no word has. */
export const MARKED_TOKENS: Tokens = {
  // At least sixteen characters, to leave `sk-learn-example` alone. They may be readable words, as in test keys.
  'OpenAI, Anthropic, OpenRouter, DeepSeek': [/sk-/, /[\w-]{16,}/],
  'Groq, Replicate, Hugging Face, npm': [/(?:gsk|r8|hf|npm)_/, /[A-Za-z0-9]{30,}/],
  'xAI, Perplexity': [/(?:xai|pplx)-/, /[A-Za-z0-9]{32,}/],
  'Tavily, LangSmith': [/(?:tvly-|lsv2_)/, /[\w-]{20,}/],
  'Google access token': [/ya29\./, /[\w-]{20,}/],
  'Google refresh token': [/(?<![+/])1\/\//, /0[\w-]{30,}/],
  'Google client secret': [/GOCSPX-/, /[\w-]{20,}/],
  GitHub: [/(?:gh[oprsu]|github_pat)_/, /\w{20,}/],
  GitLab: [/gl(?:pat|dt|rt|ft|ptt|cbt|soat)-/, /[\w.-]{16,}/],
  Slack: [/(?:xox[a-z]|xapp)-/, /[\w-]{10,}/],
  Stripe: [/(?:[rs]k_(?:live|test)|whsec)_/, /[\w+/=-]{16,}/],
  SendGrid: [/SG\./, /[\w-]{16,64}\.[\w-]{16,}/],
  PyPI: [/pypi-/, /[\w-]{40,}/],
  DigitalOcean: [/do[opr]_v1_/, /[0-9a-f]{32,}/],
  Shopify: [/shp(?:at|ca|pa|ss|ua)_/, /[0-9A-Fa-f]{24,}/],
  Telegram: [/(?:bot)?\d{8,10}:/, /AA[\w-]{30,}/],
  Discord: [/[MNO][\w-]{23,27}\./, /[\w-]{6}\.[\w-]{27,}/],
  'New Relic': [/NR(?:AK|II|JS|BR|IQ)-/, /[\w-]{20,}/],
  Vault: [/hv[brs]\./, /[\w-]{24,}/],
  Doppler: [/dp\.(?:pt|st|sa|ct|scim|audit)\./, /[\w.-]{32,}/],
  Linear: [/lin_(?:api|oauth)_/, /[A-Za-z0-9]{32,}/],
  Notion: [/(?:secret|ntn)_/, /[A-Za-z0-9]{40,}/],
  Airtable: [/pat[A-Za-z0-9]{14}\./, /[0-9a-f]{40,}/],
  Mailgun: [/key-/, /[0-9a-f]{32}(?![A-Za-z0-9])/],
  'Docker, Square': [/(?:dckr_[a-z]{3}_|sq0[a-z]{3}-)/, /[\w-]{20,}/],
  'Netlify, Render, PlanetScale, Vercel': [
    /(?:nfp|rnd|pscale_(?:tkn|pw|oauth)|vercel_[a-z]{2,8}_rw)_/,
    /[A-Za-z0-9]{24,}/,
  ],
  'RubyGems, Pulumi': [/(?:rubygems_|pul-)/, /[0-9a-f]{40,}/],
  'Fly, Contentful, Clojars': [/(?:fm\d_|fo1_|CFPAT-|CLOJARS_)/, /[\w+/=-]{40,}/],
  Terraform: [/[A-Za-z0-9]{14}\.atlasv1\./, /[\w-]{40,}/],
  Dynatrace: [/dt0[a-z]\d{2}\./, /[A-Z0-9]{24}\.[A-Z0-9]{40,}/],
  Dropbox: [/sl\./, /[\w.-]{60,}/],
  Plaid: [/access-(?:sandbox|development|production)-/, /[0-9a-f-]{36}/],
  'Grafana, Figma, Sentry, Supabase': [/(?:glsa|glc|figd|sntry[su]|sbp|sb_secret)_/, /[\w+/=-]{30,}/],
  'Postman, Heroku, age': [/(?:PMAK|HRKU|AGE-SECRET-KEY)-/, /[\w-]{30,}/],
  Capstan: [/(?:hk_(?:live|test)|cpk)_/, /[\w-]{8,}/],
  // A reference to a credential is as opaque as one: the protocol lets it appear in `configurable.ai` and nowhere else.
  // A short one of small letters alone is a name, such as that of a variable.
  'credential reference': [/cred_/, /(?:[\w-]{24,}|(?=[a-z_]*[^a-z_\W]|[a-z_]*-)[\w-]{8,})/],
};

/** Tokens without punctuation in their prefix. They could occur inside base64, so each has extra conditions. */
export const PLAIN_TOKENS: Tokens = {
  Google: [/(?<![+/])AIza/, /[\w-]{30,}/],
  AWS: [/A(?:KI|SI|BI|CC)A(?=[A-Z0-9]{16})/, /[A-Z0-9]{16}(?![A-Za-z0-9])/],
  Twilio: [/(?:AC|SK)(?=[0-9a-f]{8})/, /[0-9a-f]{32}(?![A-Za-z0-9])/],
  Databricks: [/dapi(?=[0-9a-f]{8})/, /[0-9a-f]{32}(?![A-Za-z0-9])/],
  Atlassian: [/ATATT(?=[\w=-]{16})/, /[\w=-]{60,}/],
  Bitbucket: [/ATBB(?=[A-Za-z0-9]{16})/, /[A-Za-z0-9]{28,}/],
  Artifactory: [/AKCp(?=[A-Za-z0-9]{16})/, /[A-Za-z0-9]{60,}/],
};

/** URLs and parameters whose next part is a credential by itself. */
export const KEYED_PREFIX = [
  /hooks\.slack\.com\/(?:services|workflows|triggers)\//,
  /discord(?:app)?\.com\/api\/webhooks\//,
  /(?:Account|SharedAccess)Key=/,
  /[?&;]sig=/,
  /X-Amz-(?:Signature|Security-Token)=/,
];

/** The source of a pattern that matches what one of these does. */
export function anyOf(patterns: RegExp[]): string {
  return `(?:${patterns.map(({ source }) => source).join('|')})`;
}
