import type { Refusal } from '../../../../protocol/errors.ts';
import { isObject, type JsonObject, pointerOf } from '../../../../protocol/format/json.ts';
import type { Change } from '../../../../runtime/change.ts';
import type { Subject } from '../../../../runtime/run-row.ts';

/** A problem of an artifact. */
export interface Problem {
  /** A JSON pointer. */
  readonly path: string;
  readonly message: string;
}

/** The exact text of a proposed artifact, and in whose name it would be installed. */
export interface ProposedArtifact {
  readonly proposalId: string;
  readonly author: { readonly subject: Subject };
  readonly text: string;
}

/** The result of an installation. */
export interface Installation {
  /** What the artifact replaces. */
  readonly replaces?: string | undefined;
  /** What `uninstall` needs to know. */
  readonly undo: JsonObject;
}

/** Installs artifacts of one kind. Only `install` and `uninstall` decide on changes. */
export interface Installer {
  /** The problems that make the artifact invalid. */
  check(artifact: ProposedArtifact): Promise<readonly Problem[]>;
  /** Names what the artifact would replace, in its current version; empty if it replaces nothing. */
  current(artifact: ProposedArtifact): Promise<string>;
  /** The text of what the artifact would replace, for a diff. */
  replaced?(artifact: ProposedArtifact): Promise<string | undefined>;
  /** The effect that the artifact would have now, if that can be told from the artifact alone. */
  preview?(artifact: ProposedArtifact): Promise<JsonObject | undefined>;
  /** Installs a valid artifact. */
  install(artifact: ProposedArtifact): Promise<Change<Installation> | Refusal>;
  /** Restores what was installed before. Changes nothing if the artifact was removed in another way. */
  uninstall(author: ProposedArtifact['author'], undo: JsonObject): Promise<Change>;
}

/** The problems that a refusal names in its details, with JSON pointers. */
export function problemsOf({ message, details = {} }: Refusal): Problem[] {
  const { fields, path, field } = details;
  if (Array.isArray(fields) && fields.length > 0) {
    return fields
      .filter(isObject)
      .map((each) => ({ path: pointerOf(String(each.path ?? '')), message: String(each.message) }));
  }
  return [{ path: pointerOf(String(path ?? field ?? '')), message }];
}
