import { type Arrival, Receiver } from '../../support/receiver.ts';
import type { Scenario } from '../scenario.ts';

const EVENTS = ['run.started', 'node.started', 'node.completed', 'run.completed'];
const OWN_HEADER = /^x-openwop-|^content-type$|^user-agent$/;

/** What a receiver of webhooks gets for one run. */
export const webhooks: Scenario = {
  name: 'webhooks',
  modes: ['conformance'],
  async play(stage) {
    const api = stage.as('editor');
    const receiver = await Receiver.open();
    try {
      const { status, body } = await api.post('/v1/webhooks', { url: receiver.url, events: EVENTS });
      stage.record('registered', { status, body: { ...body, url: '<receiver>' } });
      await api.run('conformance-noop');
      await receiver.count(EVENTS.length);
      stage.record('arrivals', receiver.arrivals.map(essence));
      await api.request('DELETE', `/v1/webhooks/${body.webhookId}`);
    } finally {
      receiver.close();
    }
  },
};

function essence({ headers, body }: Arrival): object {
  const names = Object.keys(headers).filter((name) => OWN_HEADER.test(name));
  return { headers: names.sort(), body };
}
