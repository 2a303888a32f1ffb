import { Type } from 'typebox';
import { refuse } from '../../../protocol/errors.ts';
import { Closed, MapOf, NonEmpty } from '../../../protocol/format/schema.ts';
import { reply, route } from '../../request.ts';
import { SWITCHABLE, type Switches } from '../switches.ts';

const operation = route<{ readonly switches: Switches }>();
const Overlay = Closed({ overlay: MapOf(Type.Boolean()) });

/** Switches a capability off, so that a suite can see how workflows that need it are refused. */
const toggleCapability = operation({
  operationId: 'seamCapabilityToggle',
  summary: 'Test seam: switch a capability off for the tenant of the caller',
  method: 'POST',
  path: '/v1/host/sample/test/capability-toggle',
  scope: 'workflows:write',
  body: Closed({
    name: Type.Optional(NonEmpty),
    value: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
    reset: Type.Optional(Type.Boolean()),
  }),
  replies: { 200: Overlay },
  refusals: [400],
  handle: ({ caller, body: { name, value = null, reset } }, { switches }) => {
    const { tenant } = caller.subject;
    if (reset) switches.reset(tenant);
    if (name !== undefined && value !== null && !SWITCHABLE.includes(name)) {
      return refuse('validation_error', `Only ${SWITCHABLE.join(' and ')} can be switched.`, { field: 'name' });
    }
    if (name !== undefined) switches.turn(tenant, name, value);
    return reply(200, { overlay: switches.of(tenant) });
  },
});

/** Forgets what a suite has switched. */
const resetSeams = operation({
  operationId: 'seamReset',
  summary: 'Test seam: undo what was switched',
  method: 'POST',
  path: '/v1/host/sample/test/reset',
  scope: 'workflows:write',
  replies: { 200: Overlay },
  handle: ({ caller }, { switches }) => {
    switches.reset(caller.subject.tenant);
    return reply(200, { overlay: {} });
  },
});

/** The test seams of switched capabilities. */
export const toggleSeams = [toggleCapability, resetSeams];
