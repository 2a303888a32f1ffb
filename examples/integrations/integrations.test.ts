import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type AuthoredWorkflow, type OwnNode, testWorkflow } from 'capstan/build';
import { onEmail, readEmail } from './email.ts';
import { fakeGitHub, fakeS3, fakeSlack } from './fakes.ts';
import { createIssue, openPullRequest } from './github.ts';
import { once, postgresQuery } from './postgres.ts';
import { getObject, putObject } from './s3.ts';
import { objectPath, signed } from './s3-signature.ts';
import { askInSlack, slackApproval, slackMessage } from './slack.ts';

/** Every node runs in a real host, against a fake of its service. Run it with `capstan test`. */

const services = { SLACK_API_URL: fakeSlack(), GITHUB_API_URL: fakeGitHub(), S3_URL: fakeS3() };
const slack = services.SLACK_API_URL;
const allNodes = [slackMessage, createIssue, openPullRequest, putObject, getObject, postgresQuery];

before(async () => {
  for (const [name, fake] of Object.entries(services)) process.env[name] = await fake.open();
  process.env.SLACK_BOT_TOKEN = 'xoxb-test';
  process.env.GITHUB_TOKEN = 'ghp-test';
  process.env.AWS_ACCESS_KEY_ID = 'AKIATEST';
  process.env.AWS_SECRET_ACCESS_KEY = 'secret';
});
after(() => {
  for (const fake of Object.values(services)) fake.close();
});

type Call = readonly [node: OwnNode, inputs: object, config?: object];

/** Runs nodes one after the other, each with its inputs; gives their outputs and how the run ended. */
async function run(...calls: readonly Call[]) {
  const nodes = calls.map(([{ typeId }, inputs, config = {}], index) => {
    const ports = Object.entries(inputs).map(([port, value]) => [port, { type: 'static' as const, value }]);
    return { id: `n${index}`, typeId, inputs: Object.fromEntries(ports), config: { ...config } };
  });
  const edges = nodes.slice(1).map(({ id }, index) => ({ sourceNodeId: `n${index}`, targetNodeId: id }));
  const workflow: AuthoredWorkflow = { id: 'calls', version: '1', nodes, edges };
  const { outputs, error } = await testWorkflow({ nodes: allNodes, workflows: [workflow] }, workflow);
  return { outputs: nodes.map(({ id }) => outputs[id]), error };
}

test('Slack gets a message, and what it refuses fails the node', async () => {
  const { outputs, error } = await run(
    [slackMessage, { channel: 'C123456', text: 'Hello' }],
    [slackMessage, { channel: 'C999999', text: 'Hello' }],
  );
  assert.deepEqual(outputs[0], { channel: 'C123456', ts: '1503435956.000247' });
  assert.equal(error?.message, 'Slack refused chat.postMessage: channel_not_found.');
});

test('Slack shows two buttons that name the run, and the run waits for one to be pressed', async () => {
  const inputs = { channel: 'C123456', question: 'Deploy?' };
  const project = { nodes: [slackApproval], workflows: [askInSlack] };
  const asked = await testWorkflow(project, askInSlack, { inputs });
  assert.equal(asked.question?.kind, 'clarification');
  const { blocks } = JSON.parse(slack.asked.at(-1)?.body ?? '');
  const values = blocks[1].elements.map(({ value }: { value: string }) => JSON.parse(value));
  assert.deepEqual(
    values.map(({ answer }: { answer: string }) => answer),
    ['approve', 'reject'],
  );
  assert.deepEqual([values[0].nodeId, typeof values[0].runId], ['approval', 'string']);
  const answered = await testWorkflow(project, askInSlack, {
    inputs,
    answer: () => ({ answers: { answer: { answer: 'approve', by: 'U061F7AUR' } } }),
  });
  assert.deepEqual(answered.outputs.approval, { approved: true, by: 'U061F7AUR' });
});

test('GitHub opens issues, and one pull request for each pair of branches', async () => {
  const repository = 'octocat/Hello-World';
  const pull = { repository, title: 'Amazing', head: 'new-topic', base: 'main' };
  const { outputs, error } = await run(
    [createIssue, { repository, title: 'Found a bug', labels: ['bug'] }],
    [openPullRequest, pull],
    [openPullRequest, pull],
    [createIssue, { repository: 'octocat/Nothing', title: 'Lost' }],
  );
  const [issue, first, second] = outputs;
  assert.deepEqual(issue, { number: 1347, url: 'https://github.com/octocat/Hello-World/issues/1347' });
  assert.equal(first?.number, 1348);
  assert.deepEqual(second, first);
  assert.equal(error?.message, 'GitHub answered 404: Not Found');
});

test('S3 keeps what it is given, under any key', async () => {
  const object = { bucket: 'reports', key: "2026/été (1) & 'more'.txt" };
  const { outputs, error } = await run(
    [putObject, { ...object, content: 'Grüße' }],
    [getObject, object],
    [getObject, { ...object, key: 'absent' }],
  );
  assert.deepEqual(outputs.slice(0, 2), [{ bytes: 7 }, { content: 'Grüße' }]);
  assert.equal(error?.code, 'no_such_object');
});

// From "Authenticating Requests: Using the Authorization Header" in the documentation of Amazon S3.
test('signatures are those of the examples that AWS publishes', () => {
  const access = {
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    region: 'us-east-1',
  };
  const signatureOf = (method: string, path: string, headers = {}, body = ''): string => {
    const url = new URL(path, 'https://examplebucket.s3.amazonaws.com');
    const { authorization = '' } = signed({ method, url, headers, body }, access, new Date('2013-05-24T00:00:00Z'));
    return authorization.slice(-64);
  };
  const put = { Date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' };
  assert.deepEqual(
    [
      signatureOf('GET', '/test.txt', { Range: 'bytes=0-9' }),
      signatureOf('PUT', '/test%24file.text', put, 'Welcome to Amazon S3.'),
      signatureOf('GET', '/?lifecycle'),
      signatureOf('GET', '/?max-keys=2&prefix=J'),
    ],
    [
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    ],
  );
  assert.equal(objectPath('reports', "a b/c'd"), '/reports/a%20b/c%27d');
});

const noDatabase = process.env.EXAMPLE_DATABASE_URL === undefined;
test('PostgreSQL executes a statement once, and says what is wrong with one', { skip: noDatabase }, async () => {
  const query = (statement: string, ...parameters: unknown[]): Call => [postgresQuery, { parameters }, { statement }];
  const { outputs, error } = await run(
    query('CREATE TABLE orders (id TEXT PRIMARY KEY, total INT)'),
    query('INSERT INTO orders VALUES ($1, $2) RETURNING id, total', "o'1", 5),
    query('SELECT count(*)::int AS effects FROM capstan_effects'),
    query('INSERT INTO orders VALUES ($1, $2)', "o'1", 5),
  );
  assert.deepEqual(outputs[1], { rows: [{ id: "o'1", total: 5 }] });
  assert.deepEqual(outputs[2], { rows: [{ effects: 3 }] }, 'each effect that has happened, this one among them');
  assert.equal(error?.code, 'postgres_refused');
});

test('PostgreSQL recognises an effect that it has seen', { skip: noDatabase }, async () => {
  const insert = 'INSERT INTO visits VALUES (1) RETURNING id';
  await once('create', 'CREATE TABLE visits (id INT)', []);
  const [first, again] = [await once('key', insert, []), await once('key', insert, [])];
  assert.deepEqual([first, again], [[{ id: 1 }], [{ id: 1 }]]);
  assert.deepEqual(await once('count', 'SELECT count(*)::int AS visits FROM visits', []), [{ visits: 1 }]);
});

test('an e-mail is read without what it quotes', async () => {
  const text = 'Yes, please.\r\n\r\nOn Mon, Ada wrote:\r\n> Shall I?\r\n';
  const inputs = { from: 'Bo@Example.com', subject: 'Re: RE: Order 7', text };
  const { outputs } = await testWorkflow({ nodes: [readEmail], workflows: [onEmail] }, onEmail, { inputs });
  assert.deepEqual(outputs.email, { from: 'bo@example.com', topic: 'Order 7', said: 'Yes, please.' });
});
