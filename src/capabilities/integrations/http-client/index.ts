import { httpSeam } from '../../../runtime/effects/http.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { HTTP_BYTES_MAX, HTTP_METHODS, HTTP_TIMEOUT_MAX_MS, httpFetch } from './nodes.ts';

/** Workflows that ask others on the network, through the one guard. */
export const httpClient: Capability<'httpClient', undefined> = {
  name: 'httpClient',
  advertise: () => ({
    httpClient: {
      supported: true,
      ssrfGuard: true,
      maxResponseBodyBytes: HTTP_BYTES_MAX,
      requestTimeoutMs: HTTP_TIMEOUT_MAX_MS,
      methods: [...HTTP_METHODS],
    },
  }),
  service: () => undefined,
  nodes: () => [httpFetch],
  seams: ({ runtime: { egress, clock }, settings: { credentials } }) => ({
    http: httpSeam(egress, clock, credentials),
  }),
};
