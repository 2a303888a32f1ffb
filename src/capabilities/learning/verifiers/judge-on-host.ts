import { type Finding, judgeLocally, judgeSchema } from '../../../engine/judging/verdict.ts';
import type { VerifierSpec } from '../../../protocol/learning/verifiers.ts';
import { type SchemaValidator, UnusableSchema } from '../../../runtime/validation/schema-validator.ts';

/** Evaluates the verifiers that need no further run or model call; undefined for other kinds. */
export async function judgeOnHost(
  spec: VerifierSpec,
  judged: Parameters<typeof judgeLocally>[1],
  schemas: Pick<SchemaValidator, 'validate'>,
): Promise<Finding | undefined> {
  if (spec.kind !== 'schema') return judgeLocally(spec, judged);
  try {
    return judgeSchema(await schemas.validate(spec.schema, judged.outputs));
  } catch (error) {
    if (!(error instanceof UnusableSchema)) throw error;
    return judgeSchema([`The schema is invalid: ${error.message}.`]);
  }
}
