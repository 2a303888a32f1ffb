import type { Credential } from '../../../runtime/effects/credentials.ts';
import { httpSeam } from '../../../runtime/effects/http.ts';
import { defineCapability } from '../../capability.ts';
import { WorkflowWarnings } from '../../running/workflows/door.ts';
import { storageTenants } from '../../storage-tenant.ts';
import { HTTP_BYTES_MAX, HTTP_METHODS, HTTP_TIMEOUT_MAX_MS, httpFetch } from './nodes.ts';
import { httpClientSettings, TENANT_SECRETS } from './settings.ts';
import { refusedUrls } from './warnings.ts';

/** HTTP requests of workflows, through the egress guard. */
export const httpClient = defineCapability({
  name: 'httpClient',
  settings: httpClientSettings,
  nodes: () => [httpFetch],
  build: ({ runtime: { egress, clock } }, _needs, { credentials }) => ({
    advertise: () => ({
      httpClient: {
        supported: true,
        ssrfGuard: true,
        maxResponseBodyBytes: HTTP_BYTES_MAX,
        requestTimeoutMs: HTTP_TIMEOUT_MAX_MS,
        methods: [...HTTP_METHODS],
      },
      // Workflows name what the operator has stored for their tenant, and the host fills it in.
      ...(credentials.length > 0 ? { secrets: TENANT_SECRETS } : {}),
    }),
    extensions: [WorkflowWarnings.of(refusedUrls(egress))],
    seams: { http: httpSeam(egress, clock, credentials.map(forTestKeysToo)) },
  }),
});

/** A tenant's credentials are there for its test keys too, as its MCP servers are. */
function forTestKeysToo({ tenants, ...credential }: Credential): Credential {
  return { ...credential, tenants: tenants.flatMap((name) => (name === '*' ? [name] : storageTenants(name))) };
}
