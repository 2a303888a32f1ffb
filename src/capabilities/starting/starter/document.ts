import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Owner } from '../../../protocol/running/events.ts';
import { ownerFrom } from '../../subject-columns.ts';
import { timestamp } from '../../timestamps.ts';
import type { InputColumns, StarterColumns } from './records.ts';

/** The member `inputs` of documents, with sensitive values masked; none if the request named no inputs. */
export function inputsMember({ shown_inputs: shown }: InputColumns): { inputs?: JsonObject } {
  return shown === null ? {} : { inputs: JSON.parse(shown) };
}

/** The members of documents that say whose a starter is, and since when. */
export function ownerMembers(row: StarterColumns): { belongsTo?: string; owner: Owner; createdAt: string } {
  return {
    ...(row.belongs_to === null ? {} : { belongsTo: row.belongs_to }),
    owner: ownerFrom(row),
    createdAt: timestamp(row.created_at),
  };
}
