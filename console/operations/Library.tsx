import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import type { AgentInventoryEntry } from '../../src/protocol/ai/agents.ts';
import type { PackSummary } from '../../src/protocol/ai/packs.ts';
import type { PromptTemplate } from '../../src/protocol/ai/prompts.ts';
import type { ToolDescriptor } from '../../src/protocol/ai/tools.ts';
import { agentsQuery, packsQuery, promptsQuery, toolsQuery } from '../api/operations.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import type { Column } from '../parts/DataTable.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';

type Open = SectionProps['onOpen'];

function Name({ text, id, onOpen }: { readonly text: string; readonly id: string; readonly onOpen: Open }) {
  return (
    <button type="button" className={styles.open} dir="auto" onClick={() => onOpen(id)}>
      {text}
    </button>
  );
}

const about = <Row extends { readonly description?: string }>(): Column<Row> => ({
  title: 'About',
  isExtra: true,
  show: ({ description }) => <span dir="auto">{description}</span>,
});

/** The prompts; each has a page where it can be tried. */
export function Prompts(props: SectionProps) {
  const query = useQuery(promptsQuery);
  const may = useMay();
  const navigate = useNavigate();
  const columns: readonly Column<PromptTemplate>[] = [
    {
      title: 'Prompt',
      show: ({ templateId, name = templateId }) => (
        <Link to="/prompts/$templateId" params={{ templateId }} dir="auto">
          {name}
        </Link>
      ),
    },
    { title: 'Kind', show: ({ kind }) => kind },
    { title: 'Version', show: ({ version }) => <code>{version}</code> },
    { title: 'From', isExtra: true, show: ({ meta }) => meta?.packName ?? meta?.source ?? '' },
    about(),
  ];
  return (
    <ListSection
      {...props}
      title="Prompts"
      query={query}
      columns={columns}
      keyOf={({ templateId }) => templateId}
      aside={
        may('prompts:write') ? (
          <Button icon={<Plus />} onClick={() => void navigate({ to: '/new-prompt' })}>
            New prompt
          </Button>
        ) : undefined
      }
      emptyText="A prompt is a text with variables that nodes refer to by name."
    />
  );
}

/** The agents that nodes may name. */
export function Agents(props: SectionProps) {
  const query = useQuery(agentsQuery);
  const columns: readonly Column<AgentInventoryEntry>[] = [
    { title: 'Agent', show: ({ agentId, label }) => <Name text={label} id={agentId} onOpen={props.onOpen} /> },
    { title: 'Model class', show: ({ modelClass }) => modelClass },
    {
      title: 'Pack',
      show: ({ packName, packVersion }) => (
        <code>
          {packName}@{packVersion}
        </code>
      ),
    },
    { title: 'Lacks', show: ({ degraded = [] }) => (degraded.length > 0 ? `◐ ${degraded.join(', ')}` : '') },
    about(),
  ];
  return (
    <ListSection
      {...props}
      title="Agents"
      query={query}
      columns={columns}
      keyOf={({ agentId }) => agentId}
      emptyText="Agents come with packs: install one with the command capstan packs install."
    />
  );
}

/** The tools that agents may call. */
export function Tools(props: SectionProps) {
  const query = useQuery(toolsQuery);
  const columns: readonly Column<ToolDescriptor>[] = [
    { title: 'Tool', show: ({ toolId, title = toolId }) => <Name text={title} id={toolId} onOpen={props.onOpen} /> },
    { title: 'Source', show: ({ source }) => source },
    { title: 'May', show: ({ safetyTier }) => safetyTier },
    { title: 'Network', isExtra: true, show: ({ egress = '' }) => egress },
    about(),
  ];
  return (
    <ListSection
      {...props}
      title="Tools"
      query={query}
      columns={columns}
      keyOf={({ toolId }) => toolId}
      emptyText="Tools are workflows, nodes and MCP servers that agents may call."
    />
  );
}

/** The installed packs. */
export function Packs(props: SectionProps) {
  const query = useQuery(packsQuery);
  const columns: readonly Column<PackSummary>[] = [
    { title: 'Pack', show: ({ name }) => <Name text={name} id={name} onOpen={props.onOpen} /> },
    { title: 'Version', show: ({ version }) => <code>{version}</code> },
    { title: 'Kind', show: ({ kind }) => kind },
    { title: 'Chains', isRight: true, isExtra: true, show: ({ chains }) => chains.length },
    { title: 'Agents', isRight: true, isExtra: true, show: ({ agents }) => agents.length },
    about(),
  ];
  return (
    <ListSection
      {...props}
      title="Packs"
      query={query}
      columns={columns}
      keyOf={({ name }) => name}
      emptyText="A pack brings agents, prompts or chains of nodes. Install one with the command capstan packs install."
    />
  );
}
