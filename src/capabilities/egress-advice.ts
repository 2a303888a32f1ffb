import { hostSettings } from './host-settings.ts';

const SETTING = hostSettings.variables.egressAllow!.variable;

/**
 * The problem that the egress has with a URL, for the person who wrote the URL: with the entry by which the operator would
 * permit it. Entries that are set already are not told, because they name what is inside the operator's network.
 */
export function withAllowEntry(problem: string, url: string): string {
  const { protocol, origin } = URL.parse(url) ?? {};
  if (protocol !== 'http:' && protocol !== 'https:') return problem;
  return problem.replace(SETTING, `${SETTING}=${origin}, after a comma if it is set already`);
}
