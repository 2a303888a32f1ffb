import { type Static, Type } from 'typebox';
import { verdictOf } from '../../../engine/people/verdict.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import { separation } from '../../../protocol/people/interrupts.ts';
import { ROLES, SCOPES } from '../../../protocol/trust/scopes.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { decided } from '../interrupts/door.ts';

const Optional = Type.Optional;
const RoleName = OneOf(ROLES);
const ScopeName = OneOf(SCOPES);

const rest = {
  title: Optional(NonEmpty),
  description: Optional(Type.String()),
  quorum: Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  override: Optional(Type.Object({ requiredRole: RoleName, audited: Optional(Type.Literal(true)) })),
  overrideBypassesQuorum: Optional(Type.Boolean()),
  timeoutSec: Optional(Type.Number({ exclusiveMinimum: 0, maximum: 31_536_000 })),
  ...separation,
  artifactHash: Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
  resumeSchema: Optional(MapOf(Type.Unknown(), { description: 'A remark: what answers look like is fixed' })),
};

/** Who may decide is a role, a scope or both. */
const GateConfig = Type.Union([
  Type.Object({ requiredRole: RoleName, requiredScope: Optional(ScopeName), ...rest }),
  Type.Object({ requiredScope: ScopeName, requiredRole: Optional(RoleName), ...rest }),
]);
type GateConfig = Static<typeof GateConfig>;

/** Continues once enough authorized people have approved, each under their own name. */
export const governanceGate: NodeType = {
  typeId: 'core.openwop.governance.approvalGate',
  description: 'Waits until people with a role or scope approve.',
  usualOutputs: () => ['decision', 'reason'],
  role: 'pure',
  isGate: true,
  config: GateConfig,
  run: (context) => {
    const { answer, config, node, declared } = context;
    if (answer) {
      const outputs = answer.value as JsonObject;
      return decided(context, outputs, verdictOf('approval', outputs));
    }
    const { timeoutSec, title, description, resumeSchema: _remark, ...gate } = config as GateConfig;
    const data = {
      artifactId: node.id,
      artifactType: node.artifactType ?? 'approval',
      title: title ?? node.name,
      ...(description === undefined ? {} : { description }),
      actions: ['accept', 'reject'],
      gateId: node.id,
      ...gate,
      ...(Object.keys(declared).length > 0 ? { artifactData: declared } : {}),
    };
    const timeoutMs = timeoutSec === undefined ? undefined : Math.ceil(timeoutSec * 1_000);
    return { interrupt: { kind: 'approval', data, timeoutMs } };
  },
};
