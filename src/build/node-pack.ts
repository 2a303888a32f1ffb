import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, posix, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { checkSignature, digestList, isUnlistable } from '../capabilities/ai/packs/door.ts';
import { PackSignature } from '../protocol/ai/packs.ts';
import { isRefusal } from '../protocol/errors.ts';
import { isObject, type JsonObject } from '../protocol/format/json.ts';
import { hexOf, publicKeyFrom, rawPublicKeyOf, signerOf } from '../system/ed25519.ts';
import { fatal, type NodeCall, type OwnNode, retryable } from './define-node.ts';
import { ProjectProblem } from './project-problem.ts';
import type { ValueSchema } from './value-schema.ts';

const MANIFEST = 'pack.json';
const SIGNATURE = 'pack.sig';
/** Files of one pack, and their size together. */
const FILES_MAX = 1_000;
const BYTES_MAX = 50_000_000;

const Path = Type.String({ minLength: 1, maxLength: 512 });
/** The members of `pack.json` that a worker uses; the protocol has more. */
const NodePackManifest = Type.Object({
  name: Type.String({ pattern: '^(vendor|community|private)\\.[a-z][a-z0-9_-]*(\\.[a-z][a-zA-Z0-9_-]*)+$' }),
  version: Type.String({ minLength: 1 }),
  kind: Type.Optional(Type.Literal('node')),
  runtime: Type.Object({ language: Type.Literal('javascript'), entry: Path }),
  nodes: Type.Array(
    Type.Object({
      typeId: Type.String({ minLength: 1, maxLength: 128 }),
      role: Type.String(),
      description: Type.Optional(Type.String({ maxLength: 1_000 })),
      label: Type.Optional(Type.String()),
      configSchemaRef: Type.Optional(Path),
      inputSchemaRef: Type.Optional(Path),
      outputSchemaRef: Type.Optional(Path),
    }),
    { minItems: 1, maxItems: 100 },
  ),
});
type NodePackManifest = Static<typeof NodePackManifest>;

/** The files of a pack, as text by path. */
type Files = Readonly<Record<string, string>>;

/** A pack whose files are those that were signed. */
export interface NodePack {
  readonly name: string;
  readonly version: string;
  /** Who signed it: base64 of the raw key. */
  readonly signer: string;
  readonly nodes: readonly OwnNode[];
  /** Deletes the copy that its code was loaded from. */
  readonly close: () => void;
}

/**
 * Loads a pack of nodes from a folder into this process, which must not be that of a host. The signature has to be by a
 * trusted key and over every file. What is loaded is a copy of the bytes that were checked, so a file that changes
 * afterwards changes nothing, and a file that the signature does not cover is not there.
 */
export async function loadNodePack(folder: string, trusted: readonly string[]): Promise<NodePack> {
  const { [SIGNATURE]: signature, ...files } = readFiles(folder);
  const signer = signerOfPack(files, signature, trusted);
  const manifest = manifestIn(files);
  const { copy, close } = privateFolder();
  try {
    for (const [path, text] of Object.entries(files)) {
      const file = join(copy, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    const code = await codeOf(join(copy, inside(manifest.runtime.entry, files)));
    const nodes = manifest.nodes.map((node) => packedNode(node, files, code));
    return { name: manifest.name, version: manifest.version, signer, nodes, close };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * A folder for the copy, which nobody else can write to. That alone is not enough: for a name such as `left-pad` Node
 * looks into every folder above, for which others may have written `node_modules`, and for how to read a file into the
 * next `package.json` above. So code in the copy gets files of the copy only, and a `package.json` that says nothing
 * stands right above it. Wherever the copy is, neither depends on who owns the folders on the way.
 */
function privateFolder(): { readonly copy: string; readonly close: () => void } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'capstan-pack-')));
  writeFileSync(join(root, 'package.json'), '{}');
  const copy = join(root, 'pack');
  const inCopy = pathToFileURL(join(copy, sep)).href;
  const hooks = registerHooks({
    resolve: (name, context, next) => {
      const found = next(name, context);
      const isOutside = found.url.startsWith('file:') && !found.url.startsWith(inCopy);
      if (!isOutside || !context.parentURL?.startsWith(inCopy)) return found;
      throw new ProjectProblem(`The pack imports ${name}, which is not one of its files. Bundle its dependencies.`);
    },
  });
  const close = (): void => {
    hooks.deregister();
    rmSync(root, { recursive: true, force: true });
  };
  return { copy, close };
}

/** Signs every file of a pack and writes the signature beside them; gives the public key. */
export function signNodePack(folder: string, privateKeyPem: string): string {
  const { [SIGNATURE]: _former, ...files } = readFiles(folder);
  manifestIn(files);
  const privateKey = privateKeyPem.replaceAll(/-----[^-]+-----|\s/g, '');
  const publicKey = rawPublicKeyOf(publicKeyFrom(privateKey));
  const value = signerOf(privateKey)(hexOf(listOf(files)));
  writeFileSync(
    join(folder, SIGNATURE),
    `${JSON.stringify({ algorithm: 'ed25519', publicKey, value } satisfies PackSignature, null, 2)}\n`,
  );
  return publicKey;
}

function readFiles(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  if (entries.length > FILES_MAX) throw new ProjectProblem(`${folder} has more than ${FILES_MAX} files.`);
  let bytes = 0;
  const files = entries.map((entry): [string, string] => {
    const file = join(entry.parentPath, entry.name);
    // A link could lead to anything, and what it leads to is not part of the pack.
    if (!entry.isFile()) throw new ProjectProblem(`${file} is not a file.`);
    const path = file.slice(folder.length + 1).replaceAll(sep, '/');
    if (isUnlistable(path)) {
      throw new ProjectProblem(`${JSON.stringify(file)} has a control character in its name.`);
    }
    const content = readFileSync(file);
    bytes += content.length;
    if (bytes > BYTES_MAX) throw new ProjectProblem(`${folder} has more than ${BYTES_MAX} bytes.`);
    return [path, textOf(file, content)];
  });
  return Object.fromEntries(files);
}

function textOf(file: string, content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new ProjectProblem(`${file} is not text. Packs of nodes consist of text.`);
  }
}

function listOf({ [MANIFEST]: manifest = '', ...files }: Files): string {
  return digestList(manifest, files);
}

function signerOfPack(files: Files, text: string | undefined, trusted: readonly string[]): string {
  if (text === undefined)
    throw new ProjectProblem(`The pack has no ${SIGNATURE}. Sign it: capstan packs sign <folder> --key <file>`);
  const signature = jsonOf(SIGNATURE, text);
  if (!Compile(PackSignature).Check(signature)) throw new ProjectProblem(`${SIGNATURE} is not a signature.`);
  const checked = checkSignature({ file: files[MANIFEST] ?? '', whole: listOf(files) }, signature);
  if (isRefusal(checked)) throw new ProjectProblem(checked.message);
  if (checked.covers !== 'whole') {
    throw new ProjectProblem(`The signature covers only ${MANIFEST}, not the code. Sign every file.`);
  }
  const { publicKey } = checked.signature;
  if (!trusted.some((key) => rawPublicKeyOf(key) === publicKey)) {
    throw new ProjectProblem(`The pack is signed with ${publicKey}. Add --trust ${publicKey} if you trust it.`);
  }
  return publicKey;
}

function manifestIn(files: Files): NodePackManifest {
  const manifest = jsonOf(MANIFEST, files[MANIFEST] ?? '');
  const shape = Compile(NodePackManifest);
  if (shape.Check(manifest)) return manifest;
  const [first] = shape.Errors(manifest);
  throw new ProjectProblem(`${MANIFEST}${first?.instancePath} ${first?.message}. A worker runs JavaScript nodes.`);
}

function jsonOf(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ProjectProblem(`${path}: ${(error as Error).message}`);
  }
}

/** The path of a file of the pack, however it is written; it never leads out. */
function inside(reference: string, files: Files): string {
  const path = posix.normalize(reference);
  if (Object.hasOwn(files, path)) return path;
  throw new ProjectProblem(`The pack has no file ${reference}.`);
}

type PackCode = (context: object) => unknown;

/** What the entry exports: a function for each type. */
async function codeOf(entry: string): Promise<Readonly<Record<string, PackCode>>> {
  const module = await import(pathToFileURL(entry).href);
  const nodes: unknown = module.nodes ?? module.default?.nodes ?? module.default;
  if (!isObject(nodes)) throw new ProjectProblem('The entry of the pack does not export `nodes`.');
  return nodes as Record<string, PackCode>;
}

function packedNode(
  declared: NodePackManifest['nodes'][number],
  files: Files,
  code: Readonly<Record<string, PackCode>>,
): OwnNode {
  const { typeId, role, label, description = label ?? typeId } = declared;
  const implementation = Object.hasOwn(code, typeId) ? code[typeId] : undefined;
  if (typeof implementation !== 'function')
    throw new ProjectProblem(`The entry of the pack exports no function ${typeId}.`);
  const schema = (name: string, reference: string | undefined): { readonly [Name in string]?: ValueSchema } => {
    if (reference === undefined) return {};
    const path = inside(reference, files);
    const found = jsonOf(path, files[path]!);
    if (!isObject(found)) throw new ProjectProblem(`${path} is not a JSON Schema.`);
    return { [name]: Type.Unsafe(found) };
  };
  return {
    kind: 'node',
    typeId,
    description,
    safety: role === 'pure' ? 'pure' : 'write',
    ...schema('config', declared.configSchemaRef),
    ...schema('inputs', declared.inputSchemaRef),
    ...schema('outputs', declared.outputSchemaRef),
    run: (call: NodeCall<JsonObject, JsonObject>) => callPacked(implementation, call),
  };
}

/** Calls the code of a pack by the contract of the protocol. */
async function callPacked(code: PackCode, call: NodeCall<JsonObject, JsonObject>): Promise<JsonObject> {
  const { runId, nodeId, attempt, config, inputs, signal, effect, log } = call;
  const write = (message: string, fields?: JsonObject): void => log(message, fields);
  const context = {
    ...{ runId, nodeId, attempt, config, inputs, signal, effect },
    log: { debug: write, info: write, warn: write, error: write },
    suspend: (payload: JsonObject) => suspend(call, payload),
    interrupt: (payload: JsonObject) => suspend(call, payload),
  };
  const outcome = await (async () => code(context))().catch((error) => Promise.reject(failureOf(error)));
  if (!isObject(outcome)) throw fatal('invalid_outputs', 'The node of the pack returned no outcome.');
  if (outcome.status === 'failure') throw failureOf(outcome.error);
  return isObject(outcome.outputs) ? outcome.outputs : {};
}

/** The waits of packs that this worker knows. */
async function suspend(
  { ask, sleep, sleepUntil }: NodeCall<JsonObject, JsonObject>,
  payload: JsonObject,
): Promise<unknown> {
  const { kind, seconds, timestamp, prompt = 'The node asks for an answer.' } = payload;
  if (kind === 'duration') return sleep(Number(seconds) * 1_000);
  if (kind === 'until') return sleepUntil(Date.parse(String(timestamp)));
  if (kind === 'clarification' || kind === 'approval') return ask({ prompt: String(prompt) });
  throw Object.assign(new Error(`This worker cannot wait for ${String(kind)}.`), { code: 'host_capability_missing' });
}

/** Errors of packs have a code; one that lacks something of its host stays as it is. */
function failureOf(error: unknown): Error {
  const { code = 'node_failed', message = 'The node failed.', retryable: mayRetry } = Object(error);
  const isFinal = mayRetry === false || String(code).toLowerCase() === 'host_capability_missing';
  return isFinal ? fatal(String(code), String(message)) : retryable(String(code), String(message));
}
