import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { capabilities } from '../src/capabilities/index.ts';
import { readConfig } from '../src/config.ts';
import { catalogOf } from '../src/runtime/catalog.ts';
import type { NodeType } from '../src/runtime/node-type.ts';
import { node } from './support/definitions.ts';
import { contextOf } from './support/node-context.ts';

/**
 * Goal: the page on node types says what there is. Method: it is read as a reader does, section by section, held
 * against the types of a host as it is mounted, and its examples are run.
 */

interface Section {
  readonly typeIds: readonly string[];
  /** The keys of the config; a star marks those that must be there. */
  readonly config: readonly string[];
  /** Everything that stands in it as code. */
  readonly code: ReadonlySet<string>;
  /** What has a question mark. */
  readonly optional: ReadonlySet<string>;
  readonly example: { config?: Record<string, unknown>; inputs?: Record<string, unknown>; outputs?: unknown };
}

/** Types that ask a model have a page of their own. */
const ELSEWHERE = /^core\.ai\./;

const types = mountedTypes().filter(({ typeId }) => !ELSEWHERE.test(typeId));
const byId = new Map(types.map((type) => [type.typeId, type]));
const catalog = catalogOf(types);
const sections = readSections(readFileSync(new URL('../docs/nodes.md', import.meta.url), 'utf8'));

function mountedTypes(): readonly NodeType[] {
  return capabilities.flatMap(({ nodes }) => nodes(readConfig({}, {})));
}

function readSections(page: string): Section[] {
  return page
    .split(/^### /m)
    .slice(1)
    .map((text) => {
      const [heading = ''] = text.split('\n', 1);
      const [, example = ''] = /```json\n(.*)\n```/.exec(text) ?? [];
      return {
        typeIds: [...heading.matchAll(/`([^`]+)`/g)].map(([, typeId]) => typeId!),
        config: [...text.matchAll(/^\| `(\w+)`(\*?) \|/gm)].map(([, key, star]) => `${key}${star}`),
        code: new Set([...text.matchAll(/`(\w+)\??`/g)].map(([, word]) => word!)),
        optional: new Set([...text.matchAll(/`(\w+)\?`/g)].map(([, word]) => word!)),
        example: JSON.parse(example),
      };
    });
}

/** As the page has them. A config that may take several shapes needs what all of them need. */
function configKeys({ config }: NodeType): string[] {
  const shapes = ((config as { anyOf?: unknown[] } | undefined)?.anyOf ?? [config ?? {}]) as {
    properties?: object;
    required?: string[];
  }[];
  const keys = new Set(shapes.flatMap(({ properties = {} }) => Object.keys(properties)));
  return [...keys].map((key) => (shapes.every(({ required = [] }) => required.includes(key)) ? `${key}*` : key));
}

describe('the page on node types', () => {
  it('has a section for each type, and none for types that there are not', () => {
    expect(sections.flatMap(({ typeIds }) => typeIds).sort()).toEqual([...byId.keys()].sort());
  });

  it.each(sections.flatMap(({ typeIds, ...section }) => typeIds.map((typeId) => ({ typeId, ...section }))))(
    'tells the truth about $typeId',
    async ({ typeId, config, code, optional, example }) => {
      const type = byId.get(typeId)!;
      expect([...config].sort()).toEqual(configKeys(type).sort());
      expect((type.inputs ?? []).filter((port) => !code.has(port))).toEqual([]);
      expect((type.requiredInputs ?? []).filter((port) => optional.has(port))).toEqual([]);
      expect(Object.keys(example.inputs ?? {}).filter((port) => type.inputs?.includes(port) === false)).toEqual([]);
      const given = { config: example.config ?? {}, inputs: example.inputs ?? {}, declared: example.inputs ?? {} };
      expect(catalog.checkConfig(node('a', typeId, { config: given.config }))).toEqual([]);
      if (!('outputs' in example)) return;
      expect(await type.run(contextOf(typeId, given))).toEqual({ done: { outputs: example.outputs } });
    },
    20_000,
  );

  it.each(types.filter(({ requiredInputs = [] }) => requiredInputs.length > 0).map((type) => ({ ...type, type })))(
    'marks no input of $typeId as required that it can do without',
    async ({ type, typeId, requiredInputs = [] }) => {
      const { example } = sections.find(({ typeIds }) => typeIds.includes(typeId))!;
      for (const port of requiredInputs) {
        const { [port]: _missing, ...inputs } = example.inputs ?? {};
        const given = { config: example.config ?? {}, inputs, declared: inputs };
        expect(await type.run(contextOf(typeId, given)), port).toMatchObject({ failed: { code: 'validation_error' } });
      }
    },
  );
});
