import { inactivityOf } from '../../../engine/definition/activity.ts';
import { isOfType } from '../../../engine/definition/check.ts';
import type { Plan } from '../../../engine/definition/plan.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import { type Configurable, ENGINE_VERSION } from '../../../protocol/running/runs.ts';
import { VARIABLES_MAX } from '../../../protocol/running/workflows.ts';
import { problemsOf, type SchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import type { ModelSettings } from '../../ai/models/settings.ts';
import type { Caller } from '../../request.ts';
import type { MockProviders, RunArguments } from './door.ts';

/** Engine versions that a test may ask the host to emulate. */
export const FORCED_ENGINE_VERSIONS = { min: 0, max: ENGINE_VERSION };

const METADATA_BYTES_MAX = 50 * 1_024;

/** What decides on the arguments that a run may be given. */
export interface RunRules {
  readonly mockProviders: readonly MockProviders[];
  readonly models: readonly Pick<ModelSettings, 'provider' | 'models'>[];
}

/** Refuses arguments that this caller may not give, or that the workflow does not take. */
export async function checkCreation(
  caller: Pick<Caller, 'isTest'>,
  creation: RunArguments,
  plan: Plan,
  settings: RunRules,
  schemas: Pick<SchemaValidator, 'validate'>,
): Promise<Refusal | undefined> {
  return (
    checkActivity(plan) ??
    checkMock(caller, creation.configurable, settings) ??
    checkEngineVersion(caller, creation.engineVersion) ??
    checkModels(creation.configurable, settings) ??
    checkBudget(creation.configurable) ??
    checkInputs(plan, creation.inputs) ??
    checkMetadata(creation.metadata) ??
    (await checkConfigurable(plan, creation.configurable, schemas))
  );
}

function checkActivity({ definition }: Plan): Refusal | undefined {
  const workflowStatus = inactivityOf(definition);
  if (!workflowStatus) return undefined;
  return refuse('conflict', `The workflow is ${workflowStatus}, so no run can be started.`, { workflowStatus });
}

function checkMock(
  caller: Pick<Caller, 'isTest'>,
  { mockProvider }: Configurable,
  { mockProviders }: Pick<RunRules, 'mockProviders'>,
): Refusal | undefined {
  if (!mockProvider) return undefined;
  if (!caller.isTest || mockProviders.length === 0) {
    const supportedProviders = mockProviders.flatMap(({ ids }) => ids);
    const details = { requestedProvider: mockProvider.id, supportedProviders };
    return refuse('mock_provider_forbidden', 'Mock providers are for test keys only.', details);
  }
  for (const { check } of mockProviders) {
    const refusal = check(mockProvider);
    if (refusal) return refusal;
  }
  return undefined;
}

function checkEngineVersion(caller: Pick<Caller, 'isTest'>, version: number | undefined): Refusal | undefined {
  if (version === undefined) return undefined;
  if (!caller.isTest) {
    return refuse('force_engine_version_forbidden', 'X-Force-Engine-Version is for test keys only.');
  }
  const { min, max } = FORCED_ENGINE_VERSIONS;
  if (Number.isInteger(version) && version >= min && version <= max) return undefined;
  return refuse('unsupported_force_engine_version', 'This host cannot emulate that engine version.', {
    min,
    max,
  });
}

/** Only providers that the operator configured may be named, and only without credentials of the caller. */
function checkModels({ ai, ...rest }: Configurable, { models }: Pick<RunRules, 'models'>): Refusal | undefined {
  const flat = Object.keys(rest).find((name) => name.startsWith('ai.'));
  if (flat !== undefined) {
    return refuse('validation_error', 'Use members of configurable.ai instead of names that begin with `ai.`.', {
      field: `configurable.${flat}`,
    });
  }
  if (ai?.provider === undefined) return undefined;
  if (!models.some(({ provider }) => provider === ai.provider)) {
    return refuse('validation_error', 'No such AI provider is configured.', { field: 'configurable.ai.provider' });
  }
  if (ai.credentialRef === undefined) return undefined;
  return refuse(
    'credential_forbidden',
    'This provider is used with the credentials of the host only. Leave credentialRef out.',
  );
}

/** A budget rule that the host does not enforce is refused, so that nobody relies on it. */
function checkBudget({ budget }: Configurable): Refusal | undefined {
  return budget?.onExhaustion === 'interrupt' ? notEnforced('onExhaustion') : undefined;
}

function notEnforced(name: string): Refusal {
  return refuse('capability_required', `This host does not support this value of budget.${name}.`, {
    field: `configurable.budget.${name}`,
    requiredCapability: 'budget',
  });
}

async function checkConfigurable(
  { definition: { configurableSchema } }: Plan,
  configurable: Configurable,
  schemas: Pick<SchemaValidator, 'validate'>,
): Promise<Refusal | undefined> {
  if (!configurableSchema) return undefined;
  const problems = await problemsOf(schemas, configurableSchema, configurable);
  if (problems.length === 0) return undefined;
  return refuse('validation_error', 'configurable does not match the schema of the workflow.', {
    field: 'configurable',
    problems,
  });
}

function checkInputs({ definition }: Plan, inputs: JsonObject): Refusal | undefined {
  const names = Object.keys(inputs);
  if (names.length > VARIABLES_MAX) {
    const message = `A run may have at most ${VARIABLES_MAX} inputs. Put what belongs together into one object or list.`;
    return refuse('validation_error', message, { field: 'inputs', limit: VARIABLES_MAX });
  }
  const channel = names.find((name) => Object.hasOwn(definition.channels ?? {}, name));
  if (channel !== undefined) {
    return refuse('validation_error', 'An input has the name of a channel.', { field: `inputs.${channel}` });
  }
  const takes = definition.variables.map(({ name }) => name);
  const missing = missingInputs(definition, inputs);
  if (missing.length > 0) {
    const isOne = missing.length === 1;
    const message = isOne ? 'A required input is missing.' : `Required inputs are missing: ${missing.join(', ')}.`;
    return refuse('validation_error', message, { field: `inputs.${missing[0]}`, ...(isOne ? {} : { missing }), takes });
  }
  const misfit = definition.variables.find(({ name, type }) => {
    const value = own(inputs, name) ?? null;
    return value !== null && !isOfType(type, value);
  });
  if (!misfit) return undefined;
  const field = `inputs.${misfit.name}`;
  return refuse('validation_error', `The input must be of type ${misfit.type}.`, { field, takes });
}

function missingInputs({ variables }: Plan['definition'], inputs: JsonObject): string[] {
  return variables
    .filter(
      ({ name, required, defaultValue }) => required && defaultValue === undefined && own(inputs, name) === undefined,
    )
    .map(({ name }) => name);
}

function checkMetadata(metadata: JsonObject | undefined): Refusal | undefined {
  if (!metadata || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_BYTES_MAX) return undefined;
  return refuse('validation_error', 'metadata is too large.', { field: 'metadata', maxBytes: METADATA_BYTES_MAX });
}
