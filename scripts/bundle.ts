import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InputOptions, Plugin, RolldownOutput } from 'rolldown';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Packages that stay outside the program, because they look for files beside their own. */
const OUTSIDE: readonly RegExp[] = [/^@jitl\//, /^quickjs-/, /^pino/];

/** Packages of which nothing but what the program uses is published, and that inside of it. */
export const BUNDLED: readonly string[] = [
  '@ai-sdk/anthropic',
  '@ai-sdk/google',
  '@ai-sdk/openai-compatible',
  '@ai-sdk/provider',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/server',
  '@opentelemetry/api',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-trace-otlp-proto',
  '@opentelemetry/otlp-exporter-base',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/sdk-trace',
  'ajv',
  'commander',
  'croner',
  'fastify',
  'jose',
  'marked',
  'nodemailer',
  'pg',
  'prom-client',
  'secure-json-parse',
  'yaml',
];

/** Files of the program, by the names under which they find each other when they lie in one folder. */
export const PROGRAM: Readonly<Record<string, string>> = {
  main: 'src/cli/main.ts',
  capstan: 'src/index.ts',
  // What projects import as `capstan/build`, and what their tests are started with.
  index: 'src/build/index.ts',
  register: 'src/build/register.ts',
  'sandbox-worker': 'src/system/sandbox-worker.ts',
  'schema-worker': 'src/runtime/validation/schema-worker.ts',
};

/** What also runs in a browser; the packages that it uses are installed beside it. */
export const PORTABLE: Readonly<Record<string, string>> = {
  client: 'src/client/index.ts',
  protocol: 'src/protocol/index.ts',
  engine: 'src/engine/index.ts',
};

/**
 * Bundles the program, with the packages that it uses, into a folder right below the root, where it finds the examples
 * and the documentation as it does from its sources. From a few files it starts in a third of the time that Node needs
 * to find and read some 1,500 of them one by one. Files `beside` it share its parts.
 */
export async function bundleProgram(
  folder: string,
  beside: Readonly<Record<string, string>> = {},
): Promise<RolldownOutput> {
  const input = { ...PROGRAM, ...beside };
  const output = await bundle(folder, { input, platform: 'node', external: [...OUTSIDE] });
  await cp(join(ROOT, 'src/http/front-door'), join(folder, 'front-door'), { recursive: true });
  return output;
}

/** Bundles what also runs in a browser. */
export function bundlePortable(folder: string): Promise<RolldownOutput> {
  return bundle(folder, { input: PORTABLE, platform: 'neutral', external: /^[^./]/ });
}

/**
 * Writes the few characters that are not ASCII as escapes. V8 keeps the text of a module for as long as it runs, and a
 * single such character doubles the size of all of it.
 */
const ASCII: Plugin = {
  name: 'ascii',
  generateBundle: (_options, files) => {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = inAscii(file.code);
  },
};

function inAscii(code: string): string {
  return code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

async function bundle(folder: string, options: InputOptions): Promise<RolldownOutput> {
  // It handles the signals of its process from then on: not for those who only read the lists above.
  const { rolldown } = await import('rolldown');
  const built = await rolldown({ cwd: ROOT, logLevel: 'silent', plugins: [ASCII], ...options });
  const output = await built.write({ dir: folder, chunkFileNames: '[name]-[hash].js', comments: false });
  await built.close();
  return output;
}
