import { type Static, Type } from 'typebox';
import { Closed, MapOf } from '../format/schema.ts';
import { VARIABLES_MAX } from './workflows.ts';

/** Runs one node by itself. */
export const TrialRequest = Closed(
  {
    typeId: Type.String({ minLength: 1, maxLength: 128, description: 'Type of the node' }),
    config: Type.Optional(MapOf(Type.Unknown(), { description: 'Config of the node, as in a workflow' })),
    inputs: Type.Optional(
      MapOf(Type.Unknown(), { maxProperties: VARIABLES_MAX, description: 'Value of each input port' }),
    ),
  },
  { $id: 'TrialRequest' },
);
/** A well-formed request; that the config fits the type is checked as in a registration. */
export type TrialRequest = Static<typeof TrialRequest>;

/** The tag of trial runs, by which figures and learning leave them out. */
export const TRIAL_TAG = 'capstan:trial';
