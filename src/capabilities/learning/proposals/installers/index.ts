import type { ArtifactKind } from '../../../../protocol/learning/proposals.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import type { Packs } from '../../../ai/packs/door.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import type { Schedules } from '../../../starting/schedules/door.ts';
import { automationInstaller } from './automation.ts';
import type { Installer } from './installer.ts';
import { packInstaller } from './pack.ts';
import { References } from './references.ts';
import { type RubricTarget, templateInstaller } from './rubric.ts';

/** The services into which artifacts are installed. */
export interface InstallTargets {
  readonly prompts: Prompts;
  readonly packs: Packs;
  readonly schedules: Schedules;
  readonly verifiers: RubricTarget;
}

/** An installer for each kind of artifact. */
export type Installers = Readonly<Record<ArtifactKind, Installer>>;

/** The installers that install into some services. */
export function installersFor(
  { prompts, packs, schedules, verifiers }: InstallTargets,
  runtime: Pick<Runtime, 'store' | 'catalog' | 'tools' | 'clock'>,
): Installers {
  const references = new References({ runtime, packs, prompts });
  return {
    'prompt-template': templateInstaller(prompts, verifiers),
    'workflow-chain-pack': packInstaller(packs, references, 'chains'),
    'agent-pack': packInstaller(packs, references, 'agents'),
    automation: automationInstaller(schedules, runtime.store),
  };
}
