import { defineProject } from 'capstan/build';
import { onEmail, readEmail } from './email.ts';
import { githubNodes } from './github.ts';
import { postgresQuery } from './postgres.ts';
import { s3Nodes } from './s3.ts';
import { askInSlack, onSlackButton, slackNodes } from './slack.ts';

export default defineProject({
  nodes: [...slackNodes, ...githubNodes, ...s3Nodes, postgresQuery, readEmail],
  workflows: [askInSlack, onSlackButton, onEmail],
});
