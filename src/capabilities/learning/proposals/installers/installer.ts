import type { Refusal } from '../../../../protocol/errors.ts';
import { isObject, type JsonObject, pointerOf } from '../../../../protocol/format/json.ts';
import type { Subject } from '../../../../runtime/run-row.ts';
import type { Unit } from '../../../../store/sql.ts';

/** What stands in the way of an artifact: where in it, and why. */
export interface Problem {
  /** A JSON pointer. */
  readonly path: string;
  readonly message: string;
}

/** What is proposed, to the letter, and for whom it would be installed. */
export interface Candidate {
  readonly proposalId: string;
  readonly author: { readonly subject: Subject };
  readonly text: string;
}

/** What puts an artifact into use, once its writes are committed, unless what is there has changed meanwhile. */
export interface Installation {
  readonly writes: Unit;
  /** What it takes the place of. */
  readonly replaces?: string | undefined;
  /** What `uninstall` has to know. */
  readonly undo: JsonObject;
  readonly committed?: () => void;
}

/** Where things of one kind are installed. Nothing but `install` makes anything of an artifact. */
export interface Installer {
  /** What does not fit its kind. */
  check(candidate: Candidate): Promise<readonly Problem[]>;
  /** What it would take the place of, as it is now; empty where there is nothing. */
  current(candidate: Candidate): Promise<string>;
  /** The text of that, for those who want to see what would change. */
  replaced?(candidate: Candidate): Promise<string | undefined>;
  /** What would come of it now, where the artifact alone tells. */
  preview?(candidate: Candidate): Promise<JsonObject | undefined>;
  /** For artifacts that fit. */
  install(candidate: Candidate): Promise<Installation | Refusal>;
  /** Brings back what was there before. */
  uninstall(author: Candidate['author'], undo: JsonObject): Promise<Unit>;
}

/** The places that a refusal names, in whatever way it does, as JSON pointers. */
export function problemsOf({ message, details = {} }: Refusal): Problem[] {
  const { fields, path, field } = details;
  if (Array.isArray(fields) && fields.length > 0) {
    return fields
      .filter(isObject)
      .map((each) => ({ path: pointerOf(String(each.path ?? '')), message: String(each.message) }));
  }
  return [{ path: pointerOf(String(path ?? field ?? '')), message }];
}
