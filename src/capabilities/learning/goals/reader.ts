import type { Goal } from '../../../protocol/learning/goals.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Store } from '../../../store/store.ts';
import { goalFrom, type HeldGoal, holdGoal } from './document.ts';
import type { GoalFilter } from './records.ts';
import { findGoal, type GoalRow, type GoalRunRow, listContributions, listGoals } from './records.ts';

/** Reads goals, and shows them with the runs that contributed to them. */
export class GoalReader {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async load(from: Visibility, goalId: string): Promise<HeldGoal | undefined> {
    const [row] = await this.#store.read<GoalRow>(findGoal(from, goalId));
    return row && holdGoal(row);
  }

  async list(from: Visibility, filter: GoalFilter, limit: number): Promise<Goal[]> {
    const rows = await this.#store.read<GoalRow>(listGoals(from, filter, limit));
    const contributions = await this.#contributionsTo(rows.map(({ goal_id }) => goal_id));
    return rows.map((row) => goalFrom(holdGoal(row), contributions.get(row.goal_id) ?? []));
  }

  /** How goals are judged, without the runs that contributed to them. */
  async completions(from: Visibility, filter: GoalFilter, limit: number): Promise<Pick<Goal, 'id' | 'completion'>[]> {
    const rows = await this.#store.read<GoalRow>(listGoals(from, filter, limit));
    return rows.map((row) => goalFrom(holdGoal(row), []));
  }

  /** A goal as callers see it. */
  async document(goal: HeldGoal): Promise<Goal> {
    const { goal_id: goalId } = goal.row;
    return goalFrom(goal, (await this.#contributionsTo([goalId])).get(goalId) ?? []);
  }

  async #contributionsTo(goalIds: readonly string[]): Promise<ReadonlyMap<string, string[]>> {
    const byGoal = new Map<string, string[]>(goalIds.map((goalId) => [goalId, []]));
    if (goalIds.length === 0) return byGoal;
    const rows = await this.#store.read<Pick<GoalRunRow, 'goal_id' | 'run_id'>>(listContributions(goalIds));
    for (const { goal_id, run_id } of rows) byGoal.get(goal_id)!.push(run_id);
    return byGoal;
  }
}
