import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type AuthoredWorkflow, type OwnNode, testWorkflow } from 'capstan/build';
import { onEmail, readEmail } from './email.ts';
import { fakeGitHub, fakeS3, fakeSlack } from './fakes.ts';
import { createIssue, openPullRequest } from './github.ts';
import { postgresQuery } from './postgres.ts';
import { getObject, putObject } from './s3.ts';
import { objectPath, signed } from './s3-signature.ts';
import { askInSlack, slackApproval, slackMessage } from './slack.ts';

/** Every node runs in a real host, against a fake of its service. Run it with `capstan test`. */

const services = { SLACK_API_URL: fakeSlack(), GITHUB_API_URL: fakeGitHub(), S3_URL: fakeS3() };
const slack = services.SLACK_API_URL;

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

/** Runs one node with these inputs. */
function run(node: OwnNode, inputs: object, config: object = {}) {
  const ports = Object.entries(inputs).map(([port, value]) => [port, { type: 'static' as const, value }]);
  const step = { id: 'it', typeId: node.typeId, inputs: Object.fromEntries(ports), config: { ...config } };
  const workflow: AuthoredWorkflow = { id: 'one-node', version: '1', nodes: [step] };
  return testWorkflow({ nodes: [node], workflows: [workflow] }, workflow);
}

test('Slack gets a message, and what it refuses fails the node', async () => {
  const posted = await run(slackMessage, { channel: 'C123456', text: 'Hello' });
  assert.deepEqual(posted.outputs.it, { channel: 'C123456', ts: '1503435956.000247' });
  const refused = await run(slackMessage, { channel: 'C999999', text: 'Hello' });
  assert.equal(refused.error?.message, 'Slack refused chat.postMessage: channel_not_found.');
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
  const issue = await run(createIssue, { repository, title: 'Found a bug', labels: ['bug'] });
  assert.deepEqual(issue.outputs.it, { number: 1347, url: 'https://github.com/octocat/Hello-World/issues/1347' });
  const pull = { repository, title: 'Amazing', head: 'new-topic', base: 'main' };
  const [first, second] = [await run(openPullRequest, pull), await run(openPullRequest, pull)];
  assert.equal(first.outputs.it?.number, 1348);
  assert.deepEqual(second.outputs.it, first.outputs.it);
  const absent = await run(createIssue, { repository: 'octocat/Nothing', title: 'Lost' });
  assert.equal(absent.error?.message, 'GitHub answered 404: Not Found');
});

test('S3 keeps what it is given, under any key', async () => {
  const object = { bucket: 'reports', key: "2026/été (1) & 'more'.txt" };
  const put = await run(putObject, { ...object, content: 'Grüße' });
  assert.deepEqual(put.outputs.it, { bytes: 7 });
  assert.deepEqual((await run(getObject, object)).outputs.it, { content: 'Grüße' });
  assert.equal((await run(getObject, { ...object, key: 'absent' })).error?.code, 'no_such_object');
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

test('PostgreSQL executes a statement once, and says what is wrong with one', {
  skip: !process.env.EXAMPLE_DATABASE_URL,
}, async () => {
  const query = (statement: string, parameters: unknown[] = []) => run(postgresQuery, { parameters }, { statement });
  await query('CREATE TABLE orders (id TEXT PRIMARY KEY, total INT)');
  const inserted = await query('INSERT INTO orders VALUES ($1, $2) RETURNING id, total', ["o'1", 5]);
  assert.deepEqual(inserted.outputs.it, { rows: [{ id: "o'1", total: 5 }] });
  assert.deepEqual((await query('SELECT count(*)::int AS count FROM orders')).outputs.it, { rows: [{ count: 1 }] });
  const twice = await query('INSERT INTO orders VALUES ($1, $2)', ["o'1", 5]);
  assert.equal(twice.error?.code, 'postgres_refused');
  const { rows } = (await query('SELECT key FROM capstan_effects')).outputs.it as { rows: unknown[] };
  assert.equal(rows.length, 4, 'each effect that has happened, and none that was refused');
});

test('an e-mail is read without what it quotes', async () => {
  const text = 'Yes, please.\r\n\r\nOn Mon, Ada wrote:\r\n> Shall I?\r\n';
  const inputs = { from: 'Bo@Example.com', subject: 'Re: RE: Order 7', text };
  const { outputs } = await testWorkflow({ nodes: [readEmail], workflows: [onEmail] }, onEmail, { inputs });
  assert.deepEqual(outputs.email, { from: 'bo@example.com', topic: 'Order 7', said: 'Yes, please.' });
});
