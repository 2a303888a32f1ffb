import { BlockList, isIP } from 'node:net';

/** Where an address leads: to this machine, out into the world, or to something inside that is not for strangers. */
export type Reach = 'loopback' | 'public' | 'inside';

const LOOPBACK = listOf(['127.0.0.0/8', '::1/128']);

/** What IANA does not call globally reachable, and one public address that is a metadata service in disguise. */
const INSIDE = listOf([
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

/** Everything else of IPv6 is local, reserved, multicast or not given out yet. */
const GLOBAL_UNICAST = listOf(['2000::/3']);

export function reachOf(address: string): Reach {
  const family = isIP(address);
  if (family === 4) return reachOfIPv4(address);
  const groups = family === 6 ? groupsOf(address) : undefined;
  return groups ? reachOfIPv6(address, groups) : 'inside';
}

function reachOfIPv4(address: string): Reach {
  if (LOOPBACK.check(address, 'ipv4')) return 'loopback';
  return INSIDE.check(address, 'ipv4') ? 'inside' : 'public';
}

/** An address that carries an IPv4 address is judged by that one: it is where packets end up. */
function reachOfIPv6(address: string, groups: readonly number[]): Reach {
  if (LOOPBACK.check(address, 'ipv6')) return 'loopback';
  if (startsWith(groups, [0, 0, 0, 0, 0, 0xffff])) return reachOfIPv4(ipv4Of(groups, 6));
  const isTranslated = startsWith(groups, [0x64, 0xff9b, 0, 0, 0, 0]);
  const isTunnelled = startsWith(groups, [0x2002]);
  if (isTranslated || isTunnelled) {
    return reachOfIPv4(ipv4Of(groups, isTranslated ? 6 : 1)) === 'public' ? 'public' : 'inside';
  }
  return GLOBAL_UNICAST.check(address, 'ipv6') && !INSIDE.check(address, 'ipv6') ? 'public' : 'inside';
}

/** The eight groups of an IPv6 address in any spelling; none for one that names a network interface. */
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
    const [net = '', bits] = range.split('/');
    list.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** The last labels of names that never leave the building. */
const INSIDE_SUFFIXES = ['localhost', 'local', 'localdomain', 'internal', 'cluster', 'lan', 'home.arpa'];

/** A name without a dot means something only to whoever is near; so do some endings. */
export function isInsideName(name: string): boolean {
  return !name.includes('.') || INSIDE_SUFFIXES.some((suffix) => name.endsWith(`.${suffix}`));
}

export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}
