import { serveOwnImports } from './project-imports.ts';

// Loaded with `node --import` before the tests of a project.
serveOwnImports();
