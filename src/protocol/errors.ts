import { type Static, Type } from 'typebox';
import { AnyObject, Closed, NonEmpty } from './format/schema.ts';

/**
 * All error codes of this host with their HTTP status. A refusal names a code, and only the HTTP edge looks up its
 * status. Codes with status 0 occur only inside a run (`RunSnapshot.error`, `node.failed`).
 */
export const ERRORS = {
  validation_error: 400,
  unsupported_stream_mode: 400,
  unsupported_mock_provider: 400,
  unsupported_force_engine_version: 400,
  protocol_version_mismatch: 400,
  INVALID_RESUME_VALUE: 400,
  webhook_url_rejected: 400,
  prompt_variable_unresolved: 400,
  schedule_horizon_exceeded: 400,
  invalid_manifest: 400,
  invalid_pack_name: 400,
  invalid_version: 400,
  pack_kind_invalid: 400,
  pack_integrity_failure: 400,
  pack_signature_invalid: 400,
  pack_peer_dependency_missing: 400,
  manifest_mismatch: 400,
  tarball_gunzip_failed: 400,
  tarball_tar_parse_failed: 400,
  tarball_manifest_missing: 400,
  tarball_manifest_too_large: 400,
  channel_access_denied: 400,
  channel_schema_breaking_change: 400,
  unauthenticated: 401,
  key_expired: 401,
  key_revoked: 401,
  forbidden: 403,
  force_engine_version_forbidden: 403,
  mock_provider_forbidden: 403,
  credential_forbidden: 403,
  workspace_membership_required: 403,
  pack_namespace_unauthorized: 403,
  not_found: 404,
  interrupt_not_found: 404,
  pack_not_found: 404,
  pack_version_not_found: 404,
  signature_not_available: 404,
  chain_not_found: 404,
  subscription_not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  conflict: 409,
  run_already_active: 409,
  run_terminal: 409,
  run_state_conflict: 409,
  idempotency_in_flight: 409,
  idempotency_key_mismatch: 409,
  version_conflict: 409,
  interrupt_already_resolved: 409,
  interrupt_expired: 410,
  interrupt_gone: 410,
  run_expired: 410,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  expectation_failed: 417,
  capability_required: 422,
  correlation_mismatch: 422,
  invalid_request: 422,
  chain_unresolvable_typeid: 422,
  chain_parameter_invalid: 422,
  chain_edge_condition_invalid: 422,
  sub_chain_unsupported: 422,
  sensitive_param_not_deferrable: 422,
  headers_too_large: 431,
  rate_limited: 429,
  internal_error: 500,
  capability_not_provided: 501,
  service_unavailable: 503,
  pack_registry_unreachable: 503,
  recursion_limit_exceeded: 0,
  run_timeout: 0,
  node_timeout: 0,
  output_limit_exceeded: 0,
  loopback_limit_exceeded: 0,
  approval_rejected: 0,
  approval_timeout: 0,
  unknown_child_workflow: 0,
  child_failed: 0,
  engine_version_mismatch: 0,
  version_out_of_range: 0,
  runner_unavailable: 0,
  replay_source_missing: 0,
  replay_diverged_at_refusal: 0,
  provider_unavailable: 0,
  provider_rate_limited: 0,
  provider_rejected: 0,
  provider_policy_denied: 0,
  budget_exhausted: 0,
  budget_model_denied: 0,
  cap_breached: 0,
  invalid_envelope_shape: 0,
  unknown_envelope_kind: 0,
  unknown_schema_version: 0,
  envelope_invalid: 0,
  envelope_refusal: 0,
  envelope_truncation_unrecoverable: 0,
  envelope_correlation_conflict: 0,
  envelope_contract_violation: 0,
  prompt_not_found: 0,
  verification_failed: 0,
  conformance_test_failure: 0,
} as const satisfies Record<string, number>;

/** A code from the registry ERRORS. */
export type ErrorCode = keyof typeof ERRORS;

/** The body of every error response; it has exactly these members. */
export const ErrorEnvelope = Closed(
  {
    error: Type.String({ minLength: 1, description: 'Stable error code' }),
    message: Type.String({ minLength: 1, description: 'Explanation for people; the wording may change' }),
    details: Type.Optional(AnyObject),
  },
  { $id: 'ErrorEnvelope' },
);
/** A valid error body; which `details` it has depends on the code in `error`. */
export type ErrorEnvelope = Static<typeof ErrorEnvelope>;

/** Why a run or a node failed. */
export const RunError = Type.Object({
  code: NonEmpty,
  message: NonEmpty,
  details: Type.Optional(AnyObject),
  retryable: Type.Optional(Type.Boolean()),
});
/** The error of a run or node; if `retryable` is false, the node gets no further attempt. */
export type RunError = Static<typeof RunError>;

/** The result of a request that the rules do not allow: a value, never thrown. */
export interface Refusal {
  readonly refused: ErrorCode;
  readonly message: string;
  readonly details?: Record<string, unknown>;
  /** Overrides the status in the registry, where the protocol prescribes another one. */
  readonly status?: number;
  /** Response headers to send along, such as `Retry-After`. */
  readonly headers?: Record<string, string>;
}

/** Builds a refusal; `message` should say what happened, to which resource, and what to do next. */
export function refuse(refused: ErrorCode, message: string, details?: Record<string, unknown>): Refusal {
  return details ? { refused, message, details } : { refused, message };
}

/** Whether a result is a refusal rather than a value. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refused' in value;
}

/**
 * The refusal for a resource that does not exist or is not visible; deliberately the same, so that existence does not
 * leak.
 */
export const NOT_FOUND: Refusal = refuse('not_found', 'The resource does not exist or is not visible to you.');
