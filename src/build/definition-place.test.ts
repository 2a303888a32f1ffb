import { expect, it } from 'vitest';
import { edge, node, workflow } from '../../test/support/definitions.ts';
import { placeIn } from './definition-place.ts';

const definition = workflow([node('price'), node('charge')], [edge('price', 'charge')]);

it.each([
  ['nodes[1]', 'the node "charge"'],
  ['nodes[0].config.taxPercent', 'config.taxPercent of the node "price"'],
  ['edges[0].condition', 'condition of the edge from "price" to "charge"'],
  ['variables[0].type', 'variables[0].type'],
])('the place %s is %s', (path, place) => {
  expect(placeIn(definition, path)).toBe(place);
});
