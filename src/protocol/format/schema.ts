import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';

/** An object schema that rejects members other than those listed. */
export const Closed = <P extends TProperties>(properties: P, options: object = {}): TObject<P> =>
  Type.Object(properties, { ...options, additionalProperties: false });

/** A schema for an object with arbitrary keys whose values share one schema. */
export const MapOf = <T extends TSchema>(values: T, options: object = {}): TUnsafe<Record<string, Static<T>>> =>
  Type.Unsafe({ ...options, type: 'object', additionalProperties: values });

/** A schema for any object. */
export const AnyObject = MapOf(Type.Unknown());

/** A schema for one of the given strings. */
export const OneOf = <const T extends readonly string[]>(values: T, options: object = {}): TUnsafe<T[number]> =>
  Type.Unsafe({ ...options, type: 'string', enum: values });

/** A schema for a string with at least one character. */
export const NonEmpty = Type.String({ minLength: 1 });

/** A schema for a point in time. */
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });
