/** Turns conversations into prompts, with the template for tools or the plain one. */
import type { Conversation, Prompt } from '../engine.ts'
import type { ModelConfig } from './config.ts'
import { parseTemplate } from './template.ts'
import { createEncoder } from './tokenizer.ts'

/** Turns conversations and texts into tokens. */
export interface Prompts {
  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` if it does not fit into
   * `contexts` context windows, by default 1, or if the template rejects it.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /** Tokenizes a text in which special tokens count. */
  trusted(text: string): number[]
}

/**
 * Parses the model's templates. `contextWindow` is the limit of prompt and answer together, in
 * tokens. Changes the tokenizer in `config`.
 */
export function createPrompts(config: ModelConfig, contextWindow: number): Prompts {
  const { tokenizer, tokenizerConfig, templates, tokenNames, endTokens } = config
  const plain = parseTemplate(templates.plain, tokenNames)
  const tools = templates.tools === null ? plain : parseTemplate(templates.tools, tokenNames)
  const source = templates.plain + (templates.tools ?? '')
  const encoder = createEncoder(tokenizer, tokenizerConfig, source, endTokens)

  // An answer needs at least one token.
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
