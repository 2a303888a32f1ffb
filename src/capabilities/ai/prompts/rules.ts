import { Compile } from 'typebox/compile';
import { isOfType } from '../../../engine/definition/check.ts';
import { PromptTemplate, TEMPLATE_TEXT_MAX } from '../../../protocol/ai/prompts.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { once } from '../../../protocol/format/once.ts';
import { compareVersions } from '../../../protocol/format/versions.ts';
import { schemaProblemsByPointer } from '../../../runtime/catalog.ts';
import { findSecret } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import type { KnownVersion } from './records.ts';

/** Versions that one template may have, including removed ones. */
export const VERSIONS_MAX = 1_000;

const shape = once(() => Compile(PromptTemplate));

/** Refuses a value that does not match the schema of a template. */
export function shapeMisfits(value: unknown): Refusal | undefined {
  const fields = schemaProblemsByPointer(shape(), value);
  const [first] = fields;
  return first && refuse('validation_error', `${first.path} ${first.message}.`.trim(), { fields });
}

/** Refuses a template that matches the schema and still is not valid. */
export function checkTemplate(template: PromptTemplate): Refusal | undefined {
  const { text, variables = [] } = template;
  if (Buffer.byteLength(text) > TEMPLATE_TEXT_MAX) {
    return wrong('text', `The text has more than ${TEMPLATE_TEXT_MAX} bytes.`);
  }
  const names = variables.map(({ name }) => name);
  const twice = names.findIndex((name, index) => names.indexOf(name) < index);
  if (twice >= 0) return wrong(`variables[${twice}].name`, 'Another variable has this name.');
  const misfit = variables.findIndex(
    ({ type, defaultValue = null }) => defaultValue !== null && !isOfType(type, defaultValue),
  );
  if (misfit >= 0)
    return wrong(`variables[${misfit}].defaultValue`, 'The default value does not have the type of the variable.');
  // Templates are stored forever and shown to many people, so a secret in one would leak.
  const secret = findSecret(template);
  return secret === undefined ? undefined : wrong(secret, 'This looks like a secret. Make it a variable instead.');
}

function wrong(path: string, message: string): Refusal {
  return refuse('validation_error', `${path}: ${message}`, { fields: [{ path, message }] });
}

/** A new version must be later than the latest; a removed one may come back only with the content that it had. */
export function checkSuccession(
  { version, digest }: Pick<KnownVersion, 'version' | 'digest'>,
  known: readonly KnownVersion[],
): Refusal | undefined {
  const latest = known.find(({ removed_at }) => removed_at === null)?.version;
  const same = known.find((other) => other.version === version);
  if (same?.removed_at === null)
    return conflict('This version exists already, and versions do not change. Submit it with a later version.', latest);
  if (latest !== undefined && compareVersions(version, latest) <= 0) {
    return conflict('The version must be later than the latest one.', latest);
  }
  if (same && same.digest !== digest) {
    return conflict('This version had other content before it was removed. Submit it with a later version.', latest);
  }
  if (known.length < VERSIONS_MAX || same) return undefined;
  return refuse('conflict', `A template may have at most ${VERSIONS_MAX} versions.`, { limit: VERSIONS_MAX });
}

function conflict(message: string, latest: string | undefined): Refusal {
  return latest === undefined ? refuse('conflict', message) : refuse('conflict', message, { latest });
}

/** Refuses a workspace that the caller's credential is not for. */
export function checkWorkspace({ subject }: Caller, workspaceId: string | undefined): Refusal | undefined {
  if (workspaceId === undefined || workspaceId === subject.workspace) return undefined;
  return refuse('workspace_membership_required', 'You are not a member of this workspace.');
}
