import { createHash, createHmac } from 'node:crypto';

/** Who signs, and where. */
export interface S3Access {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

/** What is signed. */
export interface S3Request {
  readonly method: string;
  readonly url: URL;
  /** Headers that are part of the signature, besides those that are added. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
/** Stricter than `encodeURIComponent`, as the signature wants it. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);

/** The path of an object; the parts of its key are encoded once, for the request and for the signature alike. */
export function objectPath(bucket: string, key: string): string {
  return `/${[bucket, ...key.split('/')].map(encoded).join('/')}`;
}

/** The headers of a request to S3, signed by version 4 of AWS's scheme. */
export function signed(
  { method, url, headers = {}, body = '' }: S3Request,
  access: S3Access,
  at: Date,
): Record<string, string> {
  const time = at.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()])),
    host: url.host,
    'x-amz-content-sha256': sha256(body),
    'x-amz-date': time,
  };
  const names = Object.keys(all).sort();
  const query = [...url.searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort();
  const canonical = [
    method,
    url.pathname,
    query.join('&'),
    ...names.map((name) => `${name}:${all[name]}`),
    '',
    names.join(';'),
    all['x-amz-content-sha256'],
  ].join('\n');
  const scope = `${time.slice(0, 8)}/${access.region}/s3/aws4_request`;
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${access.secretAccessKey}`);
  const signature = hmac(Buffer.from(key), ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString(
    'hex',
  );
  const credential = `Credential=${access.accessKeyId}/${scope}`;
  const authorization = `AWS4-HMAC-SHA256 ${credential},SignedHeaders=${names.join(';')},Signature=${signature}`;
  return { ...all, authorization };
}
