import { BlockList, isIP } from 'node:net';

/** Where an IP address leads: to this machine, to the public internet, or to a private or reserved network. */
type Reach = 'loopback' | 'public' | 'private';

const LOOPBACK = listOf(['127.0.0.0/8', '::1/128']);

/**
 * Ranges that IANA does not list as globally reachable, and 168.63.129.16: a public address that Azure uses for its
 * metadata service.
 */
const PRIVATE = listOf([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
]);

/** The global unicast range of IPv6; everything else is local, reserved, multicast or unassigned. */
const GLOBAL_UNICAST = listOf(['2000::/3']);

/**
 * Classifies an IP address, for deciding whether a request may go there. Anything that is not an IP address counts as
 * private.
 */
export function reachOf(address: string): Reach {
  const family = isIP(address);
  if (family === 4) return reachOfIPv4(address);
  const groups = family === 6 ? groupsOf(address) : undefined;
  return groups ? reachOfIPv6(address, groups) : 'private';
}

function reachOfIPv4(address: string): Reach {
  if (LOOPBACK.check(address, 'ipv4')) return 'loopback';
  return PRIVATE.check(address, 'ipv4') ? 'private' : 'public';
}

/**
 * An address that embeds an IPv4 address (mapped, NAT64, 6to4) is classified by that one, because packets end up there.
 */
function reachOfIPv6(address: string, groups: readonly number[]): Reach {
  if (LOOPBACK.check(address, 'ipv6')) return 'loopback';
  if (startsWith(groups, [0, 0, 0, 0, 0, 0xffff])) return reachOfIPv4(ipv4Of(groups, 6));
  const isTranslated = startsWith(groups, [0x64, 0xff9b, 0, 0, 0, 0]);
  const isTunnelled = startsWith(groups, [0x2002]);
  if (isTranslated || isTunnelled) {
    return reachOfIPv4(ipv4Of(groups, isTranslated ? 6 : 1)) === 'public' ? 'public' : 'private';
  }
  return GLOBAL_UNICAST.check(address, 'ipv6') && !PRIVATE.check(address, 'ipv6') ? 'public' : 'private';
}

/** Parses an IPv6 address into its eight groups; undefined for one with a zone index (`%eth0`). */
function groupsOf(address: string): number[] | undefined {
  const url = `http://[${address}]/`;
  if (!URL.canParse(url)) return undefined;
  const [head = '', tail] = new URL(url).hostname.slice(1, -1).split('::');
  const before = numbersOf(head);
  const after = numbersOf(tail ?? '');
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function numbersOf(groups: string): number[] {
  return groups === '' ? [] : groups.split(':').map((group) => Number.parseInt(group, 16));
}

function startsWith(groups: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((group, index) => groups[index] === group);
}

function ipv4Of(groups: readonly number[], at: number): string {
  return [groups[at]!, groups[at + 1]!].flatMap((group) => [group >> 8, group & 0xff]).join('.');
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', bits] = range.split('/');
    list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Suffixes of host names that only resolve inside a private network. */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'localdomain', 'internal', 'cluster', 'lan', 'home.arpa'];

/** Whether a host name is private: it has no dot, or ends in a suffix that public DNS does not serve. */
export function isPrivateName(name: string): boolean {
  return !name.includes('.') || PRIVATE_SUFFIXES.some((suffix) => name.endsWith(`.${suffix}`));
}

/** Whether a host name always means this machine (RFC 6761). */
export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}
