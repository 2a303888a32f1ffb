import { element, lazily } from './dom.js';

/** Shows JSON Schemas as lists of fields that open into what is inside them. */
export function createSchemaView(schemas) {
  const resolve = (schema) => (schema.$ref ? (schemas[nameOf(schema)] ?? {}) : schema);

  return { typeOf, inside, sampleOf };

  /** A short name for the type of a schema. */
  function typeOf(schema) {
    if (schema.$ref) return nameOf(schema);
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' | ');
    if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {})}`;
    if (isMap(schema) && !isAny(schema.additionalProperties)) return `map of ${typeOf(schema.additionalProperties)}`;
    return schema.format ? `${schema.type}, ${schema.format}` : (schema.type ?? 'any');
  }

  /** The details of a schema; nothing if its name says everything. */
  function inside(schema) {
    const whole = resolve(schema);
    if (whole.properties) return fieldsOf(whole);
    if (whole.anyOf) return variantsOf(whole.anyOf);
    if (whole.type === 'array') return inside(whole.items ?? {});
    return isMap(whole) ? inside(whole.additionalProperties) : [];
  }

  function fieldsOf({ properties, required = [] }) {
    const isRequired = ([name]) => required.includes(name);
    const fields = Object.entries(properties)
      .sort((one, other) => Number(isRequired(other)) - Number(isRequired(one)))
      .map(([name, schema]) => field(name, schema, required.includes(name)));
    return fields.length === 0 ? [] : [element('ul', { class: 'schema' }, fields)];
  }

  function variantsOf(variants) {
    const open = variants.filter((variant) => hasInside(variant));
    return open.map((variant, index) =>
      element('div', { class: 'variant' }, element('p', {}, index === 0 ? 'either' : 'or'), inside(variant)),
    );
  }

  function field(name, schema, isRequired) {
    const head = headOf(name, schema, isRequired);
    if (!hasInside(schema)) return element('li', {}, element('div', { class: 'head' }, head));
    const details = element('details', {}, element('summary', { class: 'head' }, head));
    return element(
      'li',
      {},
      lazily(details, () => inside(schema)),
    );
  }

  function headOf(name, schema, isRequired) {
    const whole = resolve(schema);
    return [
      element('code', { class: 'name' }, name),
      element('span', { class: 'type' }, typeOf(schema)),
      isRequired ? element('span', { class: 'required' }, 'required') : undefined,
      ...[limitsOf(whole), choicesOf(whole), whole.description]
        .filter(Boolean)
        .map((text) => element('span', { class: 'note' }, text)),
    ];
  }

  /** The smallest valid value: required fields only, with placeholders. */
  function sampleOf(schema, placeholder, name = 'value') {
    const whole = resolve(schema);
    if (whole.properties) {
      const names = whole.required ?? [];
      return Object.fromEntries(names.map((key) => [key, sampleOf(whole.properties[key], placeholder, key)]));
    }
    if (whole.type === 'array') return [sampleOf(whole.items ?? {}, placeholder, name.replace(/s$/, ''))];
    if (whole.type === 'object') return {};
    if (whole.type === 'boolean') return true;
    if (whole.type === 'integer' || whole.type === 'number') return whole.minimum ?? 1;
    return whole.const ?? whole.enum?.[0] ?? placeholder(name);
  }

  function hasInside(schema) {
    const whole = resolve(schema);
    if (whole.properties) return Object.keys(whole.properties).length > 0;
    if (whole.anyOf) return whole.anyOf.some(hasInside);
    if (whole.type === 'array') return hasInside(whole.items ?? {});
    return isMap(whole) && hasInside(whole.additionalProperties);
  }
}

function nameOf({ $ref }) {
  return $ref.split('/').at(-1);
}

function isMap({ type, properties, additionalProperties }) {
  return type === 'object' && !properties && typeof additionalProperties === 'object';
}

/** Whether a schema accepts every value. */
function isAny(schema) {
  return Object.keys(schema).length === 0;
}

function choicesOf({ enum: choices }) {
  return choices?.join(' · ');
}

function limitsOf(schema) {
  const limits = [
    schema.minLength === 1 && schema.maxLength === undefined
      ? 'not empty'
      : between(schema.minLength, schema.maxLength, 'characters'),
    between(schema.minimum, schema.maximum, ''),
    between(schema.minItems, schema.maxItems, 'items'),
    schema.pattern ? `matches ${schema.pattern}` : '',
  ];
  return limits.filter(Boolean).join(', ');
}

function between(least, most, unit) {
  if (least === undefined && most === undefined) return '';
  const range =
    most === undefined ? `at least ${least}` : least === undefined ? `at most ${most}` : `${least} to ${most}`;
  return `${range} ${unit}`.trim();
}
