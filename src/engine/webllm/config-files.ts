/** Converts MLC's `mlc-chat-config.json` into the configuration files that other models have. */
import { CONFIG_FILE, findMlcContextTokens } from '../../catalog/mlc/model-files.ts'
import type { Files } from '../engine.ts'
import { readJson } from '../text/config.ts'
import { findEndTokenIds, toChatTemplate } from './chat-template.ts'

/**
 * Resolves with the files plus a `config.json` and a `generation_config.json` made from MLC's file.
 * It also adds a chat template if the model brings none. Existing files take precedence.
 */
export async function toConfigFiles(files: Files): Promise<Files> {
  const chat = await readChatConfig(files)
  const { model_config: model } = chat
  const modelConfig = typeof model === 'object' && model !== null ? model : {}
  const tokens = findMlcContextTokens(chat)
  const specialTokens = await readSpecialTokens(files)
  const listed = findEndTokenIds(chat['conv_template'], (text) => specialTokens.byText.get(text))
  const all = [...new Set([chat['eos_token_id'] ?? [], listed].flat())]
  // Without any end token here, the tokenizer's configuration decides.
  const endTokens = all.length > 0 ? all : undefined
  const config = {
    ...modelConfig,
    ...(tokens !== undefined && { max_position_embeddings: tokens }),
    eos_token_id: endTokens,
  }
  const { temperature, top_p, repetition_penalty } = chat
  const generation = { temperature, top_p, repetition_penalty, eos_token_id: endTokens }
  const blob = (content: object): Blob => new Blob([JSON.stringify(content)])
  return new Map([
    ['config.json', blob(config)],
    ['generation_config.json', blob(generation)],
    ['tokenizer_config.json', blob({})],
    ...((await hasTemplate(files)) ? [] : toTemplateFile(chat['conv_template'], specialTokens)),
    ...files,
  ])
}

function toTemplateFile(conversation: unknown, specialTokens: SpecialTokens): [string, Blob][] {
  const template = toChatTemplate(conversation, (id) => specialTokens.byId.get(id))
  return template === null ? [] : [['chat_template.jinja', new Blob([template])]]
}

/** Resolves with `true` if the model brings its own chat template, which is more complete. */
async function hasTemplate(files: Files): Promise<boolean> {
  if (files.has('chat_template.jinja') || files.has('chat_template.json')) return true
  return Boolean((await tryReadJson(files, 'tokenizer_config.json'))?.['chat_template'])
}

/** Special tokens of the tokenizer. */
interface SpecialTokens {
  byId: ReadonlyMap<number, string>
  byText: ReadonlyMap<string, number>
}

async function readSpecialTokens(files: Files): Promise<SpecialTokens> {
  const added = (await tryReadJson(files, 'tokenizer.json'))?.['added_tokens']
  const tokens = (Array.isArray(added) ? added : []) as { id: number; content: string }[]
  return {
    byId: new Map(tokens.map(({ id, content }) => [id, content])),
    byText: new Map(tokens.map(({ id, content }) => [content, id])),
  }
}

/** Resolves with a JSON file's content; `null` if it is missing or invalid (callers report it). */
const tryReadJson = (files: Files, name: string): Promise<Record<string, unknown> | null> =>
  readJson(files, name).catch(() => null)

/** Resolves with the files, in which some fields of MLC's own configuration are replaced. */
export async function withOverrides(
  files: Files,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Files> {
  if (Object.keys(overrides).length === 0) return files
  const chat = { ...(await readChatConfig(files)), ...overrides }
  return new Map([...files, [CONFIG_FILE, new Blob([JSON.stringify(chat)])]])
}

/** Resolves with the content of MLC's own configuration. Rejects with `unavailable`. */
export const readChatConfig = (files: Files): Promise<Record<string, unknown>> =>
  readJson(files, CONFIG_FILE)
