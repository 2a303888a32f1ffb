import { useQuery } from '@tanstack/react-query';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import { useRunLog } from '../api/run-log.ts';
import { runQuery } from '../api/runs.ts';
import { Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './Item.module.css';
import { ItemHead, RunEvidence } from './ItemParts.tsx';
import { type Answer, OpenQuestion } from './OpenQuestion.tsx';
import { askedBy, kindInWords } from './open-interrupt.ts';

interface ItemProps {
  readonly item: InboxItem;
  readonly onAnswer: Answer;
}

/** A question of a run: the form on one side, what it is about on the other. */
export function InterruptItem({ item, onAnswer }: ItemProps) {
  const { runId = '', nodeId = '', title } = item;
  const log = useRunLog(runId);
  const { data: run } = useQuery(runQuery(runId));
  const asked = askedBy(log.events, nodeId);
  if (log.error !== undefined) return <Problem error={log.error} />;
  if (!asked) return <Skeleton lines={5} />;
  return (
    <>
      <ItemHead kind={kindInWords(asked)} title={title} at={item.createdAt} origin={item}>
        {asked.expiresAt && (
          <span>
            ends <Time at={asked.expiresAt} />
          </span>
        )}
      </ItemHead>
      <div className={styles.columns}>
        <OpenQuestion runId={runId} nodeId={nodeId} asked={asked} run={run} item={item} onAnswer={onAnswer} />
        <RunEvidence runId={runId} events={log.events} run={run} nodeId={nodeId} />
      </div>
    </>
  );
}
