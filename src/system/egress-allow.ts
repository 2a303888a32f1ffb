import { BlockList, isIP } from 'node:net';

/** What the operator permits on purpose, though it is not public: `[scheme://]host[:port]`. */
export interface EgressRule {
  /** `http:` or `https:`; both if undefined. */
  readonly scheme: string | undefined;
  /** Any port if undefined. */
  readonly port: number | undefined;
  /** A host name, or with a leading dot all names below it. */
  readonly name?: string;
  /** Addresses. */
  readonly range?: BlockList;
}

const RULE =
  /^(?:(https?):\/\/)?(?:\[([0-9a-f:.]+)\]|([^\s/:[\]]+)|([0-9a-f]*:[0-9a-f:.]+))(?:\/(\d{1,3}))?(?::(\d{1,5}))?$/i;
const NAME = /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;

/** Reads one rule, such as `http://localhost:11434`, `10.0.0.0/8`, `*.corp.example:8443` or `[fd00::]/8`; undefined if it is none. */
export function parseEgressRule(text: string): EgressRule | undefined {
  const [, scheme, bracketed, plain, bare, bits, digits] = RULE.exec(text) ?? [];
  const host = bracketed ?? plain ?? bare;
  const port = digits === undefined ? undefined : Number(digits);
  if (host === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  const where = { scheme: scheme && `${scheme.toLowerCase()}:`, port };
  const family = isIP(host);
  if (family === 0) {
    const name = host.toLowerCase().replace(/^\*/, '');
    return bits === undefined && NAME.test(host) && !/^[\d.]+$/.test(host) ? { ...where, name } : undefined;
  }
  const length = Number(bits ?? (family === 4 ? 32 : 128));
  if (length > (family === 4 ? 32 : 128)) return undefined;
  const range = new BlockList();
  range.addSubnet(host, length, family === 4 ? 'ipv4' : 'ipv6');
  return { ...where, range };
}

/** The rules of the operator, asked by URL and by address. */
export class EgressAllowList {
  readonly #rules: readonly EgressRule[];

  constructor(rules: readonly EgressRule[]) {
    this.#rules = rules;
  }

  /** Whether a rule names the host of this URL. Such a name may be known only to this machine. */
  names(url: URL, host: string): boolean {
    const wanted = host.toLowerCase();
    return this.#for(url).some(
      ({ name }) => name !== undefined && (name[0] === '.' ? wanted.endsWith(name) : wanted === name),
    );
  }

  /** Whether a rule has addresses that a URL of this scheme and port may lead to. */
  mayLeadTo(url: URL): boolean {
    return this.#for(url).some(({ range }) => range !== undefined);
  }

  /** Whether a rule has this address, for a URL of this scheme and port. */
  hasAddress(url: URL, address: string): boolean {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    return this.#for(url).some(({ range }) => range?.check(address, family) === true);
  }

  #for(url: URL): readonly EgressRule[] {
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
    return this.#rules.filter((rule) => (rule.scheme ?? url.protocol) === url.protocol && (rule.port ?? port) === port);
  }
}
