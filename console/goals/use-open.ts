import { useNavigate } from '@tanstack/react-router';
import type { GoalSearch } from './search.ts';

/** Opens a form of the page of a goal, or closes it. The address has it, so a link leads to it. */
export function useOpen(goalId: string): (form: GoalSearch['edit']) => void {
  const navigate = useNavigate();
  return (form) =>
    void navigate({
      to: '/goals/$goalId',
      params: { goalId },
      search: ({ edit: _edit, ...rest }) => (form === undefined ? rest : { ...rest, edit: form }),
      replace: true,
      resetScroll: false,
    });
}
