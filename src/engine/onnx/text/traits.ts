/** What a chat template makes use of, found out by trying: many mention what they do not write. */
import type { ChatMessage } from '../../../types/index.ts'
import type { Conversation } from '../../engine.ts'
import { parseTemplate } from './template.ts'

/** Whether the template writes the tools that may be called. */
export const readsTools = (source: string): boolean =>
  says(source, { messages: ASKED, tools: [TOOL] }, 'readers_of_tools')

/** Whether the template writes an assistant's calls, and with them what the tools gave. */
export const readsCalls = (source: string): boolean =>
  says(source, { messages: CALLED, tools: [TOOL] }, 'readers-of-calls') &&
  says(source, { messages: CALLED, tools: [TOOL] }, 'readers of results')

/** Whether the template has a switch that makes the model reason or not. */
export function readsThinking(source: string): boolean {
  const text = (thinking: boolean): string | null => draw(source, { messages: ASKED, thinking })
  const on = text(true)
  return on !== null && on !== text(false)
}

const TOOL = {
  name: 'readers_of_tools',
  description: 'Tells.',
  parameters: { type: 'object', properties: { of: { type: 'string', description: 'Of what.' } } },
}

const ASKED: ChatMessage[] = [{ role: 'user', content: 'Tell.' }]

const CALLED: ChatMessage[] = [
  ...ASKED,
  {
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'call_0001', name: TOOL.name, arguments: '{"of":"readers-of-calls"}' }],
  },
  { role: 'tool', toolCallId: 'call_0001', name: TOOL.name, content: 'readers of results' },
]

const says = (source: string, conversation: Conversation, text: string): boolean =>
  draw(source, conversation)?.includes(text) === true

/** `null` where the template refuses the conversation, or fails over it. */
function draw(source: string, conversation: Conversation): string | null {
  try {
    return parseTemplate(source, NAMES).render(conversation).text
  } catch {
    return null
  }
}

const NAMES = { bos_token: '', eos_token: '', pad_token: '', unk_token: '' }
