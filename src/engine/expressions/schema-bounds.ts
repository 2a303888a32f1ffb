import { isObject, own } from '../../protocol/format/json.ts';

const DEPTH_MAX = 100;
const PARTS_MAX = 5_000;
const REFS_MAX = 1_000;
/** Parts after every reference is replaced by what it refers to. Doubling references reach this within a few levels. */
const EXPANDED_MAX = 50_000;

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];
const NAMES = ['$id', 'id', '$anchor', '$dynamicAnchor'];

/**
 * Why a schema is too complex to be compiled; undefined if it is not. This bounds the work of evaluating it on a small
 * value, and takes time linear in its size.
 */
export function complexityProblem(schema: unknown): string | undefined {
  const survey = surveyOf(schema);
  if (typeof survey === 'string') return survey;
  if (survey.refs > REFS_MAX) return `the schema has more than ${REFS_MAX} references`;
  if (new Expansion(schema, survey.named).size() <= EXPANDED_MAX) return undefined;
  return `the schema has more than ${EXPANDED_MAX} parts once its references are expanded`;
}

interface Survey {
  readonly refs: number;
  /** The subschemas that a reference can name, by that name. */
  readonly named: ReadonlyMap<string, unknown>;
}

/** Counts the parts without recursion, because the depth is not known to be bounded yet. */
function surveyOf(schema: unknown): Survey | string {
  const named = new Map<string, unknown>();
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: schema, depth: 0 }];
  let parts = 0;
  let refs = 0;
  for (let part = open.pop(); part; part = open.pop()) {
    const { value, depth } = part;
    if (typeof value !== 'object' || value === null) continue;
    if (depth > DEPTH_MAX) return `the schema is nested more than ${DEPTH_MAX} levels deep`;
    if (++parts > PARTS_MAX) return `the schema has more than ${PARTS_MAX} parts`;
    if (isObject(value)) {
      refs += referencesIn(value).length;
      for (const name of namesIn(value)) named.set(name, value);
    }
    for (const item of Object.values(value)) open.push({ value: item, depth: depth + 1 });
  }
  return { refs, named };
}

function referencesIn(value: Record<string, unknown>): string[] {
  return REFERENCES.map((keyword) => own(value, keyword)).filter((ref) => typeof ref === 'string');
}

/** An anchor is referred to with `#`, an id without. */
function namesIn(value: Record<string, unknown>): string[] {
  return NAMES.flatMap((keyword) => {
    const name = own(value, keyword);
    if (typeof name !== 'string') return [];
    return keyword.endsWith('nchor') ? [`#${name}`] : [name];
  });
}

/** The size of a schema with its references expanded; one that leads back to itself is counted once. */
class Expansion {
  readonly #root: unknown;
  readonly #named: ReadonlyMap<string, unknown>;
  readonly #sizes = new Map<object, number>();

  constructor(root: unknown, named: ReadonlyMap<string, unknown>) {
    this.#root = root;
    this.#named = named;
  }

  size(): number {
    return this.#sizeOf(this.#root);
  }

  #sizeOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) return 0;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    this.#sizes.set(value, 1);
    const targets = isObject(value) ? referencesIn(value).map((ref) => this.#target(ref)) : [];
    const size = [...Object.values(value), ...targets].reduce<number>((sum, item) => sum + this.#sizeOf(item), 1);
    this.#sizes.set(value, size);
    return size;
  }

  #target(ref: string): unknown {
    if (this.#named.has(ref)) return this.#named.get(ref);
    const [id = '', pointer = ''] = ref.split('#', 2);
    const base = id === '' ? this.#root : this.#named.get(id);
    return pointer === '' ? base : pointer.split('/').slice(1).reduce(memberAt, base);
  }
}

function memberAt(value: unknown, token: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return own(value as Record<string, unknown>, nameIn(token));
}

function nameIn(token: string): string {
  try {
    return decodeURIComponent(token).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return token;
  }
}
