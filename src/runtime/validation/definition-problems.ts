import {
  checkDefinition,
  type NodeCatalog,
  PROBLEMS_MAX,
  type Problem,
  type SchemaAt,
  schemasIn,
} from '../../engine/definition/check.ts';
import { unknownNames } from '../../engine/definition/names.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import type { SchemaValidator } from './schema-validator.ts';

/** JSON Schemas in one document; each costs some milliseconds of a thread that all share. */
const SCHEMAS_MAX = 250;

type Schemas = Pick<SchemaValidator, 'problemWith'>;

/** Finds what is wrong with a definition or a part of one, and then with the JSON Schemas in it. */
export async function definitionProblems(
  definition: WorkflowDefinition,
  { catalog, schemas }: { readonly catalog: NodeCatalog; readonly schemas: Schemas },
): Promise<readonly Problem[]> {
  const problems = checkDefinition(definition, catalog);
  return problems.length > 0 ? problems : schemaProblems(schemasIn(definition, catalog), schemas);
}

/** The same for a whole workflow, with its variables: also finds names that nothing in it has. */
export async function workflowProblems(
  definition: WorkflowDefinition,
  checks: { readonly catalog: NodeCatalog; readonly schemas: Schemas },
): Promise<readonly Problem[]> {
  const problems = await definitionProblems(definition, checks);
  return problems.length > 0 ? problems : unknownNames(definition, checks.catalog).problems.slice(0, PROBLEMS_MAX);
}

/** The first of the schemas that cannot be used, if there is one. The rest is not compiled then. */
export async function schemaProblems<At extends SchemaAt>(
  found: readonly At[],
  schemas: Schemas,
): Promise<(Omit<At, 'schema'> & { readonly message: string })[]> {
  for (const [index, { schema, ...at }] of found.entries()) {
    const message =
      index < SCHEMAS_MAX
        ? await schemas.problemWith(schema)
        : `There are more than ${SCHEMAS_MAX} JSON Schemas in this document.`;
    if (message !== undefined) return [{ ...at, message }];
  }
  return [];
}
