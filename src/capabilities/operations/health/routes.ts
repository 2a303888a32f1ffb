import { HostHealth } from '../../../protocol/operations/health.ts';
import { reply, route } from '../../request.ts';
import type { HealthService } from './service.ts';

const operation = route<{ readonly health: HealthService }>();

const getHostHealth = operation({
  operationId: 'getHostHealth',
  summary: 'How the hosts, the queue and the store are, what the tenant may take, and which of its nodes are slow',
  method: 'GET',
  path: '/v1/host/capstan/health',
  scope: 'tenant:admin',
  replies: { 200: HostHealth },
  handle: async ({ caller }, { health }) => reply(200, await health.read(caller)),
});

/** The operation that tells how the host is. */
export const routes = [getHostHealth];
