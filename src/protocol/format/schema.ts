import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from 'typebox';

/** An object that takes no key beyond those named. */
export const Closed = <P extends TProperties>(properties: P, options: object = {}): TObject<P> =>
  Type.Object(properties, { ...options, additionalProperties: false });

/** An object whose keys are free and whose values all have one shape. */
export const MapOf = <T extends TSchema>(values: T, options: object = {}): TUnsafe<Record<string, Static<T>>> =>
  Type.Unsafe({ ...options, type: 'object', additionalProperties: values });

/** An object with any keys and any values. */
export const AnyObject = MapOf(Type.Unknown());

export const OneOf = <const T extends readonly string[]>(values: T, options: object = {}): TUnsafe<T[number]> =>
  Type.Unsafe({ ...options, type: 'string', enum: values });

export const NonEmpty = Type.String({ minLength: 1 });

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC' });
