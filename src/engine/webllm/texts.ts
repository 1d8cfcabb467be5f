/** What MLC writes beside its weights, as the files that a model is told by elsewhere. */
import { CONFIG } from '../../catalog/mlc/layout.ts'
import type { Files } from '../engine.ts'
import { modelUnusable } from '../failure.ts'

/** With a `config.json` and a `generation_config.json` that say what MLC's own file does. */
export async function textsOf(files: Files): Promise<Files> {
  const chat = await readChatConfig(files)
  const { model_config: model, context_window_size: context, sliding_window_size: window } = chat
  const inner = typeof model === 'object' && model !== null ? model : {}
  const tokens = [context, window].find((length) => typeof length === 'number' && length > 0)
  const config = {
    ...inner,
    ...(tokens !== undefined && { max_position_embeddings: tokens }),
    eos_token_id: chat['eos_token_id'],
  }
  const { temperature, top_p, repetition_penalty } = chat
  const generation = { temperature, top_p, repetition_penalty, eos_token_id: chat['eos_token_id'] }
  const blob = (content: object): Blob => new Blob([JSON.stringify(content)])
  return new Map([['config.json', blob(config)], ['generation_config.json', blob(generation)], ...files])
}

/** With parts of MLC's own file replaced. */
export async function withOverrides(
  files: Files,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Files> {
  if (Object.keys(overrides).length === 0) return files
  const chat = { ...(await readChatConfig(files)), ...overrides }
  return new Map([...files, [CONFIG, new Blob([JSON.stringify(chat)])]])
}

/** MLC's own file. */
export async function readChatConfig(files: Files): Promise<Record<string, unknown>> {
  const file = files.get(CONFIG)
  if (!file) throw modelUnusable(`its catalog entry has no resource named ${CONFIG}.`)
  try {
    return JSON.parse(await file.text()) as Record<string, unknown>
  } catch (cause) {
    throw modelUnusable(`${CONFIG} cannot be read (${String(cause)}).`, cause)
  }
}
