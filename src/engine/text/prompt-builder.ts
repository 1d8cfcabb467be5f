/** Turns conversations into prompts, with the template for tools or the plain one. */
import type { Conversation, Prompt } from '../engine.ts'
import type { ModelConfig } from './config.ts'
import { parseTemplate } from './chat-template.ts'
import { createPromptTokenizer } from './prompt-tokenizer.ts'
import { hasToolCalls } from './template-variables.ts'

/** Turns conversations and texts into tokens. */
export interface PromptBuilder {
  /**
   * Renders and tokenizes a conversation. Throws `invalid_request` if it does not fit into
   * `contexts` context windows, by default 1, or if the template rejects it.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /** Tokenizes a text in which special tokens count. */
  encodeTrusted(text: string): number[]
}

/**
 * Parses the model's templates. `contextWindow` is the limit of prompt and answer together, in
 * tokens. `placeholder` is the text of the token that templates write in place of an image. Changes the
 * tokenizer in `config`.
 */
export function createPromptBuilder(
  config: ModelConfig,
  contextWindow: number,
  placeholder?: string,
): PromptBuilder {
  const { tokenizer, tokenizerConfig, templates, tokenNames, endTokens } = config
  const plain = parseTemplate(templates.plain, tokenNames)
  const tools = templates.tools === null ? plain : parseTemplate(templates.tools, tokenNames)
  const source = templates.plain + (templates.tools ?? '')
  const encoder = createPromptTokenizer(tokenizer, tokenizerConfig, source, endTokens, placeholder)

  // An answer needs at least one token.
  const maxPromptTokens = contextWindow - 1
  const prepare: PromptBuilder['prepare'] = (conversation, contexts = 1) => {
    const { messages, tools: offered = [] } = conversation
    const { render } = offered.length > 0 || hasToolCalls(messages) ? tools : plain
    return encoder.encode(conversation, render, contexts * maxPromptTokens, maxPromptTokens)
  }
  return { prepare, encodeTrusted: encoder.encodeTrusted }
}
