/** What WebLLM answers on its own, without anything of this package, on the same files. */
import type * as Webllm from '@mlc-ai/web-llm'
import type { Page } from 'playwright'
import type { Setting } from './setting.ts'

export interface Reference {
  content: string
  promptTokens: number
}

/** What the page has to have. */
interface PageGlobals {
  importWebllm(): Promise<typeof Webllm>
}

/** Loads the model by WebLLM, asks for the most probable tokens, and unloads it. */
export function askWebllm(
  page: Page,
  { mlc }: Setting,
  messages: readonly object[],
  tokens: number,
): Promise<Reference> {
  return page.evaluate(
    async ([record, asked, count]) => {
      const { importWebllm } = globalThis as unknown as PageGlobals
      const { MLCEngine } = await importWebllm()
      const at = (url: string): string => new URL(url, location.href).href
      const own = { ...record, model: at(record.model), model_lib: at(record.model_lib) }
      const engine = new MLCEngine({ appConfig: { model_list: [own] }, logLevel: 'SILENT' })
      await engine.reload(own.model_id)
      const { choices, usage } = await engine.chat.completions.create({
        messages: asked as Webllm.ChatCompletionMessageParam[],
        max_tokens: count,
        temperature: 0,
      })
      await engine.unload()
      return {
        content: choices[0]?.message.content ?? '',
        promptTokens: usage?.prompt_tokens ?? 0,
      }
    },
    [mlc as Exclude<Setting['mlc'], string>, messages, tokens] as const,
  )
}
