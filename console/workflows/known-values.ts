import { useQuery } from '@tanstack/react-query';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import { agentsQuery, promptsQuery } from '../api/operations.ts';
import { modelsQuery } from '../api/prompts.ts';
import { useMay } from '../api/session.ts';

/** Types of nodes whose provider and model are those of a language model; elsewhere the words may mean others. */
const ASKS_MODELS = /^core\.(?:ai|openwop\.ai)\.|^vendor\.capstan\.judge$|agent/i;

/** What the host knows for the keys of a config: its providers, models and agents, and the latest version of each prompt. */
export function useKnownValues(typeId: string, { provider }: JsonObject): ReadonlyMap<string, readonly string[]> {
  const may = useMay();
  const { data: catalog = [] } = useQuery({ ...modelsQuery, enabled: may('manifest:read') });
  const { data: prompts = [] } = useQuery({ ...promptsQuery, enabled: may('prompts:read') });
  const { data: agents = [] } = useQuery({ ...agentsQuery, enabled: may('manifest:read') });
  const refs = (kind: string): readonly string[] =>
    prompts
      .filter((prompt) => prompt.kind === kind)
      .flatMap(({ templateId, version }) => [`prompt:${templateId}`, `prompt:${templateId}@${version}`]);
  const chosen = catalog.filter((each) => provider === undefined || each.provider === provider);
  const models = [
    ['provider', catalog.map((each) => each.provider)],
    ['model', [...new Set(chosen.flatMap((each) => each.models))]],
  ] as const;
  return new Map<string, readonly string[]>([
    ...(ASKS_MODELS.test(typeId) ? models : []),
    ['systemPromptRef', refs('system')],
    ['userPromptRef', refs('user')],
    ['schemaHintPromptRef', refs('schema-hint')],
    ['agentId', agents.map(({ agentId }) => agentId)],
  ]);
}
