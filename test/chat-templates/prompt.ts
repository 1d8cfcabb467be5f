/** Prepares prompts of chat completions as the package does, without a tokenizer and a model. */
import * as v from 'valibot'
import type { Conversation, Engine, Prompt } from '../../src/engine/engine.ts'
import { parseTemplate } from '../../src/engine/text/chat-template.ts'
import { planGeneration } from '../../src/generation/plan.ts'
import { chatBodySchema, parseChat } from '../../src/wire/chat.ts'
import { createJsonCount } from '../../src/values/json.ts'
import { withArgumentsCount } from '../../src/wire/tools.ts'
import type { Body } from './conversations.ts'
import { TOKENS } from './python.ts'

/** The template of the last prompt, which is parsed once for all conversations. */
let last: { source: string; template: ReturnType<typeof parseTemplate> } | undefined

/** Resolves with the prompt of a body. Rejects if the body or the template refuses it. */
export async function preparePrompt(
  source: string,
  body: Body,
): Promise<{ text: string; conversation: Conversation }> {
  if (last?.source !== source) last = { source, template: parseTemplate(source, TOKENS) }
  const { template } = last
  const sent = { ...body, model: '@test/template' }
  const jsonCount = createJsonCount()
  const fields = withArgumentsCount(jsonCount, () => v.parse(chatBodySchema, sent))
  const { request } = parseChat({ fields, sent, ignored: [], jsonCount })
  let prepared: { text: string; conversation: Conversation } | undefined
  const never = (): never => {
    throw new Error('This engine only prepares prompts.')
  }
  const engine: Engine = {
    contextWindow: 1_000_000,
    template: source,
    load: never,
    close: never,
    generate: never,
    check: () => Promise.resolve([]),
    images: {
      describe: ({ place }: { place: string }) => ({ place, rowCount: 0, firstRow: 0, pieces: [] }),
      assertReadable: () => Promise.resolve(),
    } as never,
    prepare: (conversation): Prompt => {
      const rendering = template.render(conversation)
      const { text } = rendering
      prepared = { text, conversation }
      return {
        tokens: [],
        boundaries: [],
        opening: text.slice(rendering.opening, rendering.answer),
      }
    },
  }
  await planGeneration(engine, request)
  return prepared ?? never()
}
