import { readFile } from 'node:fs/promises';
import type { ModelProvider } from '../../../runtime/effects/model.ts';
import { ProgrammedModel } from '../../../runtime/effects/programmed-model.ts';
import { scriptedProvider } from '../../../runtime/effects/scripted-model.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { ModelSettings } from './settings.ts';

export { readModels } from './settings.ts';
export { askForJson } from './structured.ts';

export interface ModelService {
  /** Who can be asked, once the host is prepared. */
  readonly providers: readonly ModelProvider[];
  /** Says what conformance suites lay out for it; there under their switch alone. */
  readonly programmed: ProgrammedModel | undefined;
  prepare(): Promise<void>;
}

export function modelService({ runtime, settings }: Host): ModelService {
  const programmed = settings.conformance ? new ProgrammedModel() : undefined;
  const providers: ModelProvider[] = programmed ? [programmed] : [];
  return {
    providers,
    programmed,
    async prepare() {
      for (const each of settings.models) providers.push(await openProvider(each, runtime));
    },
  };
}

async function openProvider(settings: ModelSettings, { egress, clock }: Runtime): Promise<ModelProvider> {
  const { kind, script } = settings;
  if (kind === 'scripted') return scriptedProvider(settings, await readScript(script!));
  const { sdkProvider } = await import('../../../runtime/effects/sdk-model.ts');
  return sdkProvider({ ...settings, kind }, egress, clock);
}

async function readScript(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`CAPSTAN_MODELS, script ${path}: ${(error as Error).message}`, { cause: error });
  }
}
