/** What differs between two hosts although they behave the same: where they are. */
export interface Whereabouts {
  readonly url: string;
  readonly checkout: string;
  readonly dataFolder: string;
}

/** Members whose value is made from time or chance, whatever it looks like. */
const VOLATILE_MEMBERS = new Set([
  '_ts',
  'ageMs',
  'checkpointPublicKey',
  'durationMs',
  'effectId',
  'etag',
  'capabilities-etag',
  'hash',
  'interruptToken',
  'merkleRoot',
  'prevHash',
  'publicKey',
  'publicKeyPEM',
  'secret',
  'secretFingerprint',
  'signature',
  'spanId',
  'parentSpanId',
  'token',
]);

/** Ids of the host: a prefix and 22 characters; ids of events go on with their position in the log. */
const ID = /\b([a-z]+-)?(0[0-9a-z]{21})([0-9a-z]{6})?\b/g;
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b/g;
/** Tokens of interrupts, API keys, and keys and receipts that are derived from the id of a run. */
const DERIVED =
  /\bhk_live_[\w-]+|\beyJ[\w-]+\.[\w-]+|\bopenwop-[0-9a-f]{16}\b|\b(?:RES|PAY|SHP|REF|RST)-[0-9a-f]{8}\b/g;

/**
 * Returns a function that replaces ids by numbers in the order of their first appearance, and times and addresses by
 * fixed words. Equal ids stay equal, so references between documents are still compared.
 */
export function normaliser({ url, checkout, dataFolder }: Whereabouts): (value: unknown) => unknown {
  const numbers = new Map<string, number>();
  const numberOf = (id: string): number => {
    if (!numbers.has(id)) numbers.set(id, numbers.size + 1);
    return numbers.get(id)!;
  };
  const inText = (text: string): string =>
    text
      .replaceAll(url, '<host>')
      .replaceAll(dataFolder, '<data>')
      .replaceAll(checkout, '<checkout>')
      .replace(TIME, '<time>')
      .replace(DERIVED, '<derived>')
      .replace(ID, (_, prefix = '', id: string, sequence = '') => `${prefix}<${numberOf(id)}>${sequence}`);
  const inValue = (value: unknown): unknown => {
    if (typeof value === 'string') return inText(value);
    if (Array.isArray(value)) return value.map(inValue);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([name, item]) => [
      inText(name),
      isVolatile(name, item, value) ? `<${name}>` : inValue(item),
    ]);
    return Object.fromEntries(entries);
  };
  return inValue;
}

function isVolatile(name: string, value: unknown, owner: object): boolean {
  if (typeof value !== 'string' && typeof value !== 'number') return false;
  const isJitteredPause = name === 'delayMs' && 'lastError' in owner;
  const isMeasuredTime = name === 'observed' && 'kind' in owner && owner.kind === 'run-duration';
  return VOLATILE_MEMBERS.has(name) || isJitteredPause || isMeasuredTime;
}
