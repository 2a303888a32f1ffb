import type { PromptTemplate } from '../../../../protocol/ai/prompts.ts';
import { isRefusal, refuse } from '../../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../../protocol/format/json.ts';
import { rubricOf, type Verifier, type VerifierRequest } from '../../../../protocol/learning/verifiers.ts';
import { withResult } from '../../../../runtime/change.ts';
import type { Prompts } from '../../../ai/prompts/door.ts';
import type { Verifiers } from '../../verifiers/door.ts';
import { type Installer, type ProposedArtifact, problemsOf } from './installer.ts';
import { promptInstaller } from './prompt-template.ts';

/** Where rubrics are installed. */
export type RubricTarget = Pick<Verifiers, 'get' | 'ownVersion' | 'put' | 'withdraw'>;

/** Installs a prompt template: in the library, or as the rubric of the verifier that its tag names. */
export function templateInstaller(prompts: Prompts, verifiers: RubricTarget): Installer {
  const [library, rubrics] = [promptInstaller(prompts), rubricInstaller(prompts, verifiers)];
  const of = ({ text }: ProposedArtifact): Installer => (rubricOf(templateOf(text)) === undefined ? library : rubrics);
  return {
    check: (artifact) => of(artifact).check(artifact),
    current: (artifact) => of(artifact).current(artifact),
    replaced: async (artifact) => of(artifact).replaced?.(artifact),
    install: (artifact) => of(artifact).install(artifact),
    uninstall: (author, undo) => (Object.hasOwn(undo, 'verifierId') ? rubrics : library).uninstall(author, undo),
  };
}

/** Installs the text of a template as the rubric of a verifier, which gets a new version. */
function rubricInstaller(prompts: Pick<Prompts, 'check'>, verifiers: RubricTarget): Installer {
  const verifierOf = async ({ author, text }: ProposedArtifact): Promise<Verifier | undefined> => {
    const found = await verifiers.get(author, rubricOf(templateOf(text))!);
    return isRefusal(found) ? undefined : found;
  };

  return {
    async current(artifact) {
      const found = await verifierOf(artifact);
      return found ? `verifier:${found.id}@${found.version}` : '';
    },

    async replaced(artifact) {
      const { rubric: text } = (await verifierOf(artifact)) ?? {};
      return text === undefined ? undefined : JSON.stringify({ ...templateOf(artifact.text), text });
    },

    async check(artifact) {
      const refusal = prompts.check(JSON.parse(artifact.text));
      if (refusal) return problemsOf(refusal);
      const found = await verifierOf(artifact);
      if (!found) return [{ path: '/tags', message: 'names no verifier' }];
      if (found.kind !== 'model') return [{ path: '/tags', message: 'names a verifier that has no rubric' }];
      const stored = await verifiers.put(artifact.author, withRubric(found, templateOf(artifact.text).text));
      return isRefusal(stored) ? problemsOf(stored).map(({ message }) => ({ path: '/text', message })) : [];
    },

    async install(artifact) {
      const found = await verifierOf(artifact);
      if (!found) return refuse('conflict', 'The verifier was removed.');
      const stored = await verifiers.put(artifact.author, withRubric(found, templateOf(artifact.text).text));
      if (isRefusal(stored)) return stored;
      const { id: verifierId, version } = stored.result;
      // A verifier of the tenant is not replaced by one of a workspace, it is shadowed: then there is none to go back to.
      const replaced = await verifiers.ownVersion(artifact.author, verifierId);
      const undo = { verifierId, version, ...defined({ replaced }) };
      return withResult(stored, () => ({ undo, replaces: `verifier:${found.id}@${found.version}` }));
    },

    uninstall: async (author, undo) => {
      const { verifierId, version, replaced } = undo as JsonObject & {
        readonly verifierId: string;
        readonly version: number;
        readonly replaced?: number;
      };
      return verifiers.withdraw(author, verifierId, { version, replaced });
    },
  };
}

function withRubric(verifier: Verifier, rubric: string): VerifierRequest {
  const { version: _version, createdBy: _createdBy, createdAt: _createdAt, ...request } = verifier;
  return { ...request, rubric };
}

function templateOf(text: string): PromptTemplate {
  return JSON.parse(text) as PromptTemplate;
}
