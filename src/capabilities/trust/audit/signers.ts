import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { isObject } from '../../../protocol/format/json.ts';
import { newKeyPair, publicKeyFrom, signatureVerifierOf, signerOf, spkiOf } from '../../../system/ed25519.ts';
import type { Egress } from '../../../system/egress.ts';
import { checkPrivate } from '../../../system/private-files.ts';

/** Something that holds a private key and signs with it. */
export interface Signer {
  /** Base64 of the SubjectPublicKeyInfo. */
  readonly publicKey: string;
  /** Signs bytes given as hex and returns the signature in base64. */
  sign(hex: string): Promise<string>;
}

const TIMEOUT_MS = 10_000;
const ANSWER_MAX = 10_000;
const FILE = 'file:';
const COMMAND = 'command:';

/** Says what is wrong with the location of a signer; undefined if nothing is. */
export function signerProblem(location: string): string | undefined {
  const isKnown = [FILE, COMMAND, 'https://', 'http://'].some((prefix) => location.startsWith(prefix));
  return isKnown ? undefined : ' must be file:<path>, command:<program> or a URL, or several of these with commas.';
}

/** A signer outside the store: a key file, a program or a service. */
export async function openSigner(location: string, egress: Pick<Egress, 'send'>): Promise<Signer> {
  if (location.startsWith(FILE)) return signerInFile(location.slice(FILE.length));
  const ask = location.startsWith(COMMAND) ? askProgram(location.slice(COMMAND.length)) : askService(location, egress);
  const publicKey = spkiOf(await ask());
  return checked(publicKey, ask);
}

/** A signer over a private key (base64 of PKCS #8) that the host holds itself. */
export function signerWith(privateKey: string): Signer {
  const sign = signerOf(privateKey);
  return { publicKey: publicKeyFrom(privateKey), sign: async (hex) => sign(hex) };
}

/** A file with the private key, which is created if it does not exist. No other user may be able to read it. */
function signerInFile(path: string): Signer {
  if (!existsSync(path)) writeFileSync(path, `${newKeyPair().privateKey}\n`, { mode: 0o600, flag: 'wx' });
  checkPrivate(path);
  const text = readFileSync(path, 'utf8').replace(/-----[^-]*-----|\s/g, '');
  try {
    return signerWith(text);
  } catch (error) {
    throw new Error(`${path} is not an Ed25519 private key in PKCS #8.`, { cause: error });
  }
}

/** Without a message it asks for the public key, with one for a signature. */
type Ask = (hex?: string) => Promise<string>;

/** `program public-key` and `program sign <hex>` print their answer in base64. */
function askProgram(program: string): Ask {
  const run = promisify(execFile);
  return async (hex) => {
    const args = hex === undefined ? ['public-key'] : ['sign', hex];
    const { stdout } = await run(program, args, { timeout: TIMEOUT_MS, maxBuffer: ANSWER_MAX });
    return stdout.trim();
  };
}

/** `GET` answers `{ "publicKey" }`, `POST { "message": "<hex>" }` answers `{ "signature" }`, both in base64. */
function askService(url: string, egress: Pick<Egress, 'send'>): Ask {
  return async (hex) => {
    const request =
      hex === undefined
        ? { url }
        : {
            url,
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ message: hex }),
          };
    const { status, body } = await egress.send({
      ...request,
      timeoutMs: TIMEOUT_MS,
      maxBytes: ANSWER_MAX,
      trusted: true,
    });
    if (status !== 200) throw new Error(`The audit signer returned status ${status}.`);
    const answer: unknown = JSON.parse(body.toString('utf8'));
    const text = isObject(answer) ? answer[hex === undefined ? 'publicKey' : 'signature'] : undefined;
    if (typeof text !== 'string') throw new Error('The audit signer returned a response of an unexpected form.');
    return text;
  };
}

/** A signature is checked before it is stored: a signer that changed its key would spoil the log. */
function checked(publicKey: string, ask: Ask): Signer {
  const isSigned = signatureVerifierOf(publicKey);
  return {
    publicKey,
    sign: async (hex) => {
      const signature = await ask(hex);
      if (!isSigned(hex, signature)) throw new Error('The audit signer did not sign with the key that it announced.');
      return signature;
    },
  };
}
