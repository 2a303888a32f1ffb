import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider';
import type { ModelMessage, ModelTool, ProviderQuestion, ToolChoice } from './model.ts';

/** Translates a question for the AI SDK. */
export function callOptions(question: ProviderQuestion): LanguageModelV4CallOptions {
  const { messages, maxTokens, temperature, stopSequences, outputSchema, tools, toolChoice } = question;
  return {
    prompt: messages.map(messageOf),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences ? { stopSequences: [...stopSequences] } : {}),
    ...(outputSchema ? { responseFormat: { type: 'json', schema: outputSchema, name: 'output' } } : {}),
    ...(tools && tools.length > 0 ? { tools: tools.map(toolOf), toolChoice: choiceOf(toolChoice) } : {}),
  };
}

function messageOf(message: ModelMessage): LanguageModelV4Message {
  const text = { type: 'text', text: message.content } as const;
  if (message.role === 'tool') {
    const output = { type: 'text', value: message.content } as const;
    const result = { type: 'tool-result', toolCallId: message.toolCallId, toolName: message.name, output } as const;
    return { role: 'tool', content: [result] };
  }
  if (message.role === 'assistant') {
    const calls = (message.toolCalls ?? []).map(
      (call) => ({ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.arguments }) as const,
    );
    return { role: 'assistant', content: [...(message.content === '' ? [] : [text]), ...calls] };
  }
  return message.role === 'system' ? { role: 'system', content: message.content } : { role: 'user', content: [text] };
}

function toolOf({ name, description, inputSchema }: ModelTool) {
  return {
    type: 'function',
    name,
    inputSchema,
    ...(description ? { description } : {}),
  } as const;
}

function choiceOf(choice: ToolChoice = 'auto'): NonNullable<LanguageModelV4CallOptions['toolChoice']> {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.name };
}
