/** Something is wrong with a project. The message says where; the stack of the host would help nobody. */
export class ProjectProblem extends Error {
  override readonly name = 'ProjectProblem';
}
