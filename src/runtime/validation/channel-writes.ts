import type { Plan } from '../../engine/definition/plan.ts';
import { own } from '../../protocol/format/json.ts';
import type { Outcome } from '../node-type.ts';
import type { SchemaValidator } from './schema-validator.ts';

type Schemas = Pick<SchemaValidator, 'validate'>;

/** Marks the writes of an outcome whose values do not match the schemas of their channels. */
export function checkWrites({ definition }: Plan, outcome: Outcome, schemas: Schemas): Outcome | Promise<Outcome> {
  if (!('done' in outcome)) return outcome;
  const writes = outcome.done.channels ?? [];
  const schemaOf = (channel: string) => own(definition.channels, channel)?.schema;
  if (!writes.some(({ channel }) => schemaOf(channel))) return outcome;
  const checked = writes.map(async (write) => {
    const schema = schemaOf(write.channel);
    const problem = schema && (await problemWith(schemas, schema, write.value));
    return problem === undefined ? write : { ...write, problem };
  });
  return Promise.all(checked).then((channels) => ({ done: { ...outcome.done, channels } }));
}

/** A channel's schema describes one entry or, for a list channel, the list; a value that matches either is valid. */
async function problemWith(schemas: Schemas, schema: object, value: unknown): Promise<string | undefined> {
  const [problem] = await schemas.validate(schema, value);
  if (problem === undefined) return undefined;
  return (await schemas.validate(schema, [value])).length === 0 ? undefined : problem;
}
