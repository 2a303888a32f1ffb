import type { Composition, composePrompt } from '../../../engine/models/prompt-text.ts';
import type {
  ContentTrust,
  PromptSource,
  PromptTarget,
  PromptTemplate,
  PromptVariable,
} from '../../../protocol/ai/prompts.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** The prompt library: templates in versions that never change. */
export interface Prompts {
  /** Latest versions that the caller may use, sorted by template id. */
  list(caller: Caller, filter: PromptFilter, after: string, limit: number): Promise<RegisteredPrompt[]>;
  /** Finds a version in the nearest library that has the template: the latest, unless the target names another. */
  find(from: Visibility, target: PromptTarget): Promise<RegisteredPrompt | undefined>;
  /** Every version that a template ever had in the caller's own library; none of them can be given other content. */
  versions(from: Visibility, templateId: string): Promise<string[]>;
  /** The versions of a template that can be used, newest first; empty if there is no such template. */
  usable(from: Visibility, templateId: string): Promise<readonly UsableVersion[]>;
  /** Refuses a value that is not a valid template. */
  check(value: unknown): Refusal | undefined;
  /** Adds a version, which becomes the latest of its template. The template may be new. */
  install(author: Author, template: PromptTemplate): Promise<Change<RegisteredPrompt> | Refusal>;
  /** Adds a version to a template that the author's own library has. */
  update(author: Author, template: PromptTemplate): Promise<Change<RegisteredPrompt> | Refusal>;
  /** Adds a version of a template that comes with the host. A version that exists stays as it is. */
  installShared(template: PromptTemplate): Promise<Change<unknown> | Refusal>;
  /** Removes a template with all its versions. Runs that began before still find them. */
  remove(author: Author, templateId: string): Promise<Change | Refusal>;
  /** Removes one version; the version before it becomes the latest again. */
  withdraw(author: Author, target: PromptVersion): Promise<Change | Refusal>;
  /** The prompt that a node would be given for these values. No model is called. */
  render(caller: Caller, preview: Preview): Promise<Composition | Refusal>;
  /** Fills a template with values. Secrets appear by their names only. */
  compose(template: PromptTemplate, filling: Filling): ReturnType<typeof composePrompt>;
}

/** The door to prompts. */
export const Prompts = door<Prompts>()('prompts');

/** Who changes the library: a caller, or a person whose decision the host carries out. */
export type Author = Pick<Caller, 'subject'>;

/** A version of a template in a library. */
export interface RegisteredPrompt {
  /** With the metadata that the host adds. */
  readonly template: PromptTemplate;
  /** As it was submitted, without the metadata that the host adds. */
  readonly submitted: PromptTemplate;
  readonly source: PromptSource;
  readonly digest: string;
}

/** A version of a template, and when it was saved. */
export interface UsableVersion {
  readonly version: string;
  readonly createdAt: number;
}

/** One version of one template. */
export type PromptVersion = Required<Pick<PromptTarget, 'templateId' | 'version'>>;

/** Which templates a list has. */
export interface PromptFilter {
  readonly kind?: string | undefined;
  readonly tag?: string | undefined;
  readonly modelClass?: string | undefined;
  readonly source?: string | undefined;
}

/** A template to render, and the values to fill it with. */
export interface Preview {
  readonly target: PromptTarget;
  readonly variables: JsonObject;
  /** How far the values are trusted; those from the host's own context always are. */
  readonly contentTrust: ContentTrust;
}

/** The values that a template is filled with. */
export interface Filling {
  readonly variables: JsonObject;
  /** Values that the reference to the template sets. Its author wrote them, so they are trusted and inserted unchanged. */
  readonly overrides?: JsonObject | undefined;
  readonly trustOf: (variable: PromptVariable) => ContentTrust;
}
