/** Conversations to prompts, with the template for the occasion. */
import type { Conversation, Prompt } from '../engine.ts'
import type { ModelConfig } from './config.ts'
import { parseTemplate } from './template.ts'
import { createEncoder } from './tokenizer.ts'

export interface Prompts {
  /**
   * Throws `invalid_request` where a conversation does not fit into so many contexts, by default one, or
   * the template refuses it.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /** Tokens of a text in which structural tokens are meant. */
  trusted(text: string): number[]
}

/** `contextWindow`: tokens of prompt and answer together that fit. Changes the tokenizer in `config`. */
export function createPrompts(config: ModelConfig, contextWindow: number): Prompts {
  const { tokenizer, tokenizerConfig, templates, tokenNames, endTokens } = config
  const plain = parseTemplate(templates.plain, tokenNames)
  const tools = templates.tools === null ? plain : parseTemplate(templates.tools, tokenNames)
  const source = templates.plain + (templates.tools ?? '')
  const encoder = createEncoder(tokenizer, tokenizerConfig, source, endTokens)

  // An answer needs a token at least.
  const fitting = contextWindow - 1
  const prepare: Prompts['prepare'] = (conversation, contexts = 1) => {
    const { render } = usesTools(conversation) ? tools : plain
    return encoder.encode(conversation, render, contexts * fitting, fitting)
  }
  return { prepare, trusted: encoder.trusted }
}

const usesTools = ({ messages, tools = [] }: Conversation): boolean =>
  tools.length > 0 ||
  messages.some(
    (message) =>
      message.role === 'tool' ||
      (message.role === 'assistant' && (message.toolCalls ?? []).length > 0),
  )
