import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { jsonErrorPlace } from '../../../protocol/format/json-error.ts';
import type { ModelProvider, PredictResponse } from '../../../runtime/effects/model.ts';
import { modelSeam } from '../../../runtime/effects/model-seam.ts';
import { scriptedProvider } from '../../../runtime/effects/scripted-model.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Host } from '../../capability.ts';
import { ModelProviders, type Models } from './door.ts';
import type { ModelSettings } from './settings.ts';

/** The providers that the operator has configured, opened at start, and those that capabilities contribute. */
export class ModelService implements Models {
  readonly #host: Pick<Host, 'runtime' | 'extensions'>;
  readonly #settings: readonly ModelSettings[];
  #configured: readonly ModelProvider[] = [];

  constructor(host: Pick<Host, 'runtime' | 'extensions'>, settings: readonly ModelSettings[]) {
    this.#host = host;
    this.#settings = settings;
  }

  get providers(): readonly ModelProvider[] {
    return [...this.#configured, ...this.#host.extensions(ModelProviders)];
  }

  readonly seam: SeamDrivers['model'] = modelSeam(() => this.providers);

  readonly predictResponse: PredictResponse = ({ provider, tenant, nodeId }) =>
    this.providers.find(({ id }) => id === provider)?.predictResponse?.(tenant, nodeId);

  /** Opens the configured providers; throws if a script cannot be read. */
  async prepare(): Promise<void> {
    const { runtime } = this.#host;
    this.#configured = await Promise.all(this.#settings.map((each) => openProvider(each, runtime)));
  }
}

async function openProvider(
  settings: ModelSettings,
  { egress, clock }: Pick<Runtime, 'egress' | 'clock'>,
): Promise<ModelProvider> {
  const { kind } = settings;
  if (kind === 'scripted') return openScript(settings);
  const { sdkProvider } = await import('../../../runtime/effects/sdk-model.ts');
  return sdkProvider({ ...settings, kind }, egress, clock);
}

/** The messages stand alone: a cause would let the start blame whatever else may lack a file. */
async function openScript(settings: ModelSettings): Promise<ModelProvider> {
  const script = settings.script!;
  const subject = `CAPSTAN_MODELS: the script ${script} of provider ${settings.provider}`;
  const text = await readFile(script, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(
      error.code === 'ENOENT'
        ? `${subject} does not exist: there is no file ${resolve(script)}. Create it, or correct \`script\`.`
        : `${subject} cannot be read (${error.code}). Correct \`script\`, or the file's permissions.`,
    );
  });
  try {
    return scriptedProvider(settings, JSON.parse(text));
  } catch (error) {
    const problem =
      error instanceof SyntaxError ? `no valid JSON from ${jsonErrorPlace(text)} on` : (error as Error).message;
    throw new Error(`${subject} cannot be used: ${problem}.`);
  }
}
