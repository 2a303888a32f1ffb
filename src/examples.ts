/** The folder of the examples, which a host without workflows of its own serves. */
export const EXAMPLES = new URL('../examples/', import.meta.url);
