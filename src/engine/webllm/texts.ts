/** What MLC writes beside its weights, as the files that a model is told by elsewhere. */
import { CONFIG, tokensOf } from '../../catalog/mlc/layout.ts'
import type { Files } from '../engine.ts'
import { modelUnusable } from '../failure.ts'
import { endsOf, templateOf } from './template.ts'

/**
 * With a `config.json` and a `generation_config.json` that say what MLC's own file does, and a chat
 * template where the model brings none.
 */
export async function textsOf(files: Files): Promise<Files> {
  const chat = await readChatConfig(files)
  const { model_config: model } = chat
  const inner = typeof model === 'object' && model !== null ? model : {}
  const tokens = tokensOf(chat)
  const special = await specialOf(files)
  const listed = endsOf(chat['conv_template'], (text) => special.byText.get(text))
  const all = [...new Set([chat['eos_token_id'] ?? [], listed].flat())]
  // None at all is left to the tokenizer to tell.
  const ends = all.length > 0 ? all : undefined
  const config = {
    ...inner,
    ...(tokens !== undefined && { max_position_embeddings: tokens }),
    eos_token_id: ends,
  }
  const { temperature, top_p, repetition_penalty } = chat
  const generation = { temperature, top_p, repetition_penalty, eos_token_id: ends }
  const blob = (content: object): Blob => new Blob([JSON.stringify(content)])
  return new Map([
    ['config.json', blob(config)],
    ['generation_config.json', blob(generation)],
    ['tokenizer_config.json', blob({})],
    ...((await hasTemplate(files)) ? [] : templateFile(chat['conv_template'], special)),
    ...files,
  ])
}

function templateFile(conversation: unknown, special: Special): [string, Blob][] {
  const template = templateOf(conversation, (id) => special.byId.get(id))
  return template === null ? [] : [['chat_template.jinja', new Blob([template])]]
}

/** Whether the model brings its own, which says more. */
async function hasTemplate(files: Files): Promise<boolean> {
  if (files.has('chat_template.jinja') || files.has('chat_template.json')) return true
  return Boolean((await readJson(files, 'tokenizer_config.json'))?.['chat_template'])
}

/** Special tokens. */
interface Special {
  byId: ReadonlyMap<number, string>
  byText: ReadonlyMap<string, number>
}

async function specialOf(files: Files): Promise<Special> {
  const added = (await readJson(files, 'tokenizer.json'))?.['added_tokens']
  const tokens = (Array.isArray(added) ? added : []) as { id: number; content: string }[]
  return {
    byId: new Map(tokens.map(({ id, content }) => [id, content])),
    byText: new Map(tokens.map(({ id, content }) => [content, id])),
  }
}

/** `null` where it is not there, or no JSON: whoever needs it says so. */
async function readJson(files: Files, name: string): Promise<Record<string, unknown> | null> {
  try {
    return JSON.parse((await files.get(name)?.text()) ?? 'null') as Record<string, unknown> | null
  } catch {
    return null
  }
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
