import { Link } from '@tanstack/react-router';
import { Empty } from '../parts/States.tsx';

/** An address that no page has. */
export function Missing() {
  return (
    <Empty title="There is no such page" action={<Link to="/runs">Go to the runs</Link>}>
      The address may be mistyped, or belong to another version of the console.
    </Empty>
  );
}
