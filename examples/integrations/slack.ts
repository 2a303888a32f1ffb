import { defineNode, defineWorkflow, fatal, Type } from 'capstan/build';
import { send, setting } from './http.ts';

/** Calls a method of the Web API. Slack answers 200 to nearly everything, and says in the body whether it worked. */
async function slack(method: string, message: object, signal: AbortSignal): Promise<{ channel: string; ts: string }> {
  const { text } = await send('slack', `${setting('SLACK_API_URL', 'https://slack.com/api')}/${method}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${setting('SLACK_BOT_TOKEN')}`,
      'content-type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify(message),
    signal,
  });
  const answer = JSON.parse(text) as { ok: boolean; error?: string; channel: string; ts: string };
  if (!answer.ok) throw fatal('slack_refused', `Slack refused ${method}: ${answer.error}.`);
  return { channel: answer.channel, ts: answer.ts };
}

/** Posts a message. Slack does not recognise repetitions: a host that dies in the middle may post it again. */
export const slackMessage = defineNode({
  typeId: 'slack.message',
  description: 'Posts a message to a channel of Slack.',
  safety: 'write',
  tool: true,
  inputs: Type.Object({ channel: Type.String(), text: Type.String() }),
  outputs: Type.Object({ channel: Type.String(), ts: Type.String() }),
  run: ({ inputs, effect }) => effect('post', ({ signal }) => slack('chat.postMessage', inputs, signal)),
});

/** Asks in a channel, and waits for somebody to press a button: `onSlackButton` brings the answer. */
export const slackApproval = defineNode({
  typeId: 'slack.approval',
  description: 'Asks for approval in a channel of Slack, and waits for a button to be pressed.',
  safety: 'write',
  inputs: Type.Object({ channel: Type.String(), question: Type.String() }),
  outputs: Type.Object({ approved: Type.Boolean(), by: Type.String() }),
  run: async ({ inputs: { channel, question }, runId, nodeId, effect, ask }) => {
    const button = (text: string, answer: string) => ({
      type: 'button',
      text: { type: 'plain_text', text },
      action_id: `capstan_${answer}`,
      value: JSON.stringify({ runId, nodeId, answer }),
    });
    const blocks = [
      { type: 'section', text: { type: 'mrkdwn', text: question } },
      { type: 'actions', elements: [button('Approve', 'approve'), button('Reject', 'reject')] },
    ];
    await effect('post', ({ signal }) => slack('chat.postMessage', { channel, text: question, blocks }, signal));
    const answer = await ask({
      prompt: question,
      answer: {
        type: 'object',
        properties: { answer: { enum: ['approve', 'reject'] }, by: { type: 'string' } },
        required: ['answer', 'by'],
      },
    });
    const { answer: pressed, by } = answer as { answer: string; by: string };
    return { approved: pressed === 'approve', by };
  },
});

/** Answers the question of another run, as the person who pressed the button. */
const answerRun = defineNode({
  typeId: 'slack.answerRun',
  description: 'Hands the answer of somebody in Slack to the run that asked.',
  safety: 'write',
  inputs: Type.Object({ value: Type.String(), by: Type.String() }),
  outputs: Type.Object({ status: Type.Number() }),
  run: async ({ inputs: { value, by }, effect }) => {
    const { runId, nodeId, answer } = JSON.parse(value) as { runId: string; nodeId: string; answer: string };
    const path = `/v1/runs/${encodeURIComponent(runId)}/interrupts/${encodeURIComponent(nodeId)}`;
    const status = await effect('answer', async ({ idempotencyKey, signal }) => {
      const answered = await send('capstan', new URL(path, setting('CAPSTAN_URL')), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${setting('CAPSTAN_KEY')}`,
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: JSON.stringify({ resumeValue: { answers: { answer: { answer, by } } } }),
        signal,
      });
      return answered.status;
    });
    return { status };
  },
});

/** What Slack sends when a button is pressed: enter the URL of this trigger as the "Request URL" of interactivity. */
export const onSlackButton = defineWorkflow(
  {
    id: 'slack-button',
    name: 'A button was pressed in Slack',
    variables: { value: Type.String(), user: Type.String() },
    triggers: [
      {
        id: 'pressed',
        type: 'webhook',
        config: {
          scheme: 'slack',
          filter: "body.type == 'block_actions' && body.actions[0].action_id.startsWith('capstan_')",
          deliveryId: "body.actions[0].action_ts + ' ' + body.user.id",
          inputs: { value: 'body.actions[0].value', user: 'body.user.id' },
        },
      },
    ],
  },
  ({ node, variables }) => {
    node('answer', answerRun, { inputs: { value: variables.value, by: variables.user }, retry: { maxRetries: 3 } });
  },
);

/** An example of its use. */
export const askInSlack = defineWorkflow(
  {
    id: 'ask-in-slack',
    name: 'Ask in Slack',
    variables: { channel: Type.String(), question: Type.String() },
  },
  ({ node, variables }) => {
    node('approval', slackApproval, { inputs: { channel: variables.channel, question: variables.question } });
  },
);

export const slackNodes = [slackMessage, slackApproval, answerRun];
