/** The file beside a bundle that says which sources it was made of. */
export const STATE_FILE: string;
/** How many sources there are, how large they are together and when the newest was changed. */
export function stateOfSources(root: string): string;
/** Whether a bundle was made of the sources as they are now. */
export function isOfTheseSources(root: string, bundle: string): boolean;
