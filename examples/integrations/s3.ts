import { defineNode, fatal, Type } from 'capstan/build';
import { type Answer, send, setting } from './http.ts';
import { objectPath, signed } from './s3-signature.ts';

/** Sends a signed request about an object. Path-style addresses work with AWS, MinIO, R2, Garage and others. */
function s3(
  method: string,
  object: { bucket: string; key: string },
  signal: AbortSignal,
  body?: string,
): Promise<Answer> {
  const url = new URL(objectPath(object.bucket, object.key), setting('S3_URL', 'https://s3.us-east-1.amazonaws.com'));
  const access = {
    accessKeyId: setting('AWS_ACCESS_KEY_ID'),
    secretAccessKey: setting('AWS_SECRET_ACCESS_KEY'),
    region: setting('AWS_REGION', 'us-east-1'),
  };
  const headers = signed({ method, url, ...(body === undefined ? {} : { body }) }, access, new Date());
  return send('s3', url, { method, headers, signal, ...(body === undefined ? {} : { body }) });
}

const bucket = Type.String({ minLength: 3 });
const key = Type.String({ minLength: 1 });

/** Stores a text under a key. Doing it twice is the same as doing it once. */
export const putObject = defineNode({
  typeId: 's3.putObject',
  description: 'Stores a text as an object of an S3-compatible service.',
  safety: 'write',
  inputs: Type.Object({ bucket, key, content: Type.String() }),
  outputs: Type.Object({ bytes: Type.Number() }),
  run: ({ inputs: { content, ...object }, effect }) =>
    effect('put', async ({ signal }) => {
      const { status, text } = await s3('PUT', object, signal, content);
      if (status !== 200) throw fatal('s3_refused', `The service answered ${status}: ${text.slice(0, 200)}`);
      return { bytes: Buffer.byteLength(content) };
    }),
});

/** Reads a text. */
export const getObject = defineNode({
  typeId: 's3.getObject',
  description: 'Reads an object of an S3-compatible service as text.',
  safety: 'read',
  inputs: Type.Object({ bucket, key }),
  outputs: Type.Object({ content: Type.String() }),
  run: ({ inputs, effect }) =>
    effect('get', async ({ signal }) => {
      const { status, text } = await s3('GET', inputs, signal);
      if (status === 404) throw fatal('no_such_object', `${inputs.bucket} has no object ${inputs.key}.`);
      if (status !== 200) throw fatal('s3_refused', `The service answered ${status}: ${text.slice(0, 200)}`);
      return { content: text };
    }),
});

export const s3Nodes = [putObject, getObject];
