/** Principals whose names can be asked for at once. */
export const PRINCIPALS_MAX = 50;

/** Whether a principal is the id of a key, because nobody chose another: it says nothing to people. */
export function isKeyId(principal: string): boolean {
  return /^key-[0-9a-z]{16,}$/.test(principal);
}

/** What people call a principal: the person whose key it is, or else the name of the key. */
export function principalName({
  principal,
  person,
  name,
}: {
  principal: string;
  person?: string;
  name?: string;
}): string {
  return person ?? name ?? principal;
}
