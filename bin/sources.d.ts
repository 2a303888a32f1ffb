/** The file beside a bundle that says which sources it was made of. */
export const STATE_FILE: string;
/** What the console is made of. */
export const CONSOLE: readonly string[];
/** A digest of the names, sizes and times of change of the sources. */
export function stateOfSources(root: string, places?: readonly string[]): string;
/** Whether a bundle was made of the sources as they are now. */
export function isOfTheseSources(root: string, bundle: string, places?: readonly string[]): boolean;
