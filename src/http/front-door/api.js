import { complain, fetchJson, ROOT } from './dom.js';
import { createLines } from './lines.js';
import { openLinked, showReference } from './reference.js';

fetchJson('/v1/openapi.json')
  .then((api) => {
    showReference(api, createLines(ROOT));
    openLinked();
    addEventListener('hashchange', openLinked);
  })
  .catch((error) => complain('operations', error));
