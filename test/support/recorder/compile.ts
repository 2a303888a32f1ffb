import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import Format from 'typebox/format';

/** What is wrong with a value, in words; empty when it fits. */
export type Check = (value: unknown) => readonly string[];

/** A compiler of schemas that knows the formats which the schemas of the protocol and of the project use. */
export function newAjv(): Ajv2020 {
  const formats = {
    date: Format.IsDate,
    'date-time': Format.IsDateTime,
    hostname: Format.IsHostname,
    uri: Format.IsUri,
    'uri-reference': Format.IsUriReference,
  };
  return new Ajv2020({ strict: false, allErrors: true, formats, logger: false });
}

/** A check by a compiled schema. */
export function checkBy(validate: ValidateFunction): Check {
  return (value) => {
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
    );
  };
}

/** Makes each value once, when it is first asked for. */
export function once<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined || made.has(key)) return known as T;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}
