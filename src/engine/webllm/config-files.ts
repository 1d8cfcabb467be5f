/** Converts MLC's `mlc-chat-config.json` into the configuration files that other models have. */
import { CONFIG_FILE, findMlcContextTokens } from '../../catalog/mlc/model-files.ts'
import { isObject } from '../../values/objects.ts'
import type { Files } from '../engine.ts'
import { readJson } from '../text/config.ts'

/**
 * Resolves with the files plus a `config.json` and a `generation_config.json` made from MLC's file.
 * It also adds a chat template if the model brings none. Existing files take precedence.
 */
export async function toConfigFiles(files: Files): Promise<Files> {
  const chat = await readChatConfig(files)
  const { model_config: model, conv_template: conversation } = chat
  const modelConfig = typeof model === 'object' && model !== null ? model : {}
  const tokens = findMlcContextTokens(chat)
  const specialTokens = await readSpecialTokens(files)
  const template = (await hasTemplate(files)) ? null : toChatTemplate(conversation, specialTokens)
  const listed = findEndTokenIds(conversation, specialTokens)
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
    ...(template === null ? [] : [['chat_template.jinja', new Blob([template])] as const]),
    ...files,
  ])
}

/** Resolves with `true` if the model brings its own chat template, which is more complete. */
async function hasTemplate(files: Files): Promise<boolean> {
  if (files.has('chat_template.jinja') || files.has('chat_template.json')) return true
  return Boolean((await tryReadJson(files, 'tokenizer_config.json'))?.['chat_template'])
}

/** A special token of the tokenizer. */
interface SpecialToken {
  id: number
  content: string
}

async function readSpecialTokens(files: Files): Promise<readonly SpecialToken[]> {
  const added = (await tryReadJson(files, 'tokenizer.json'))?.['added_tokens']
  return Array.isArray(added) ? (added as SpecialToken[]) : []
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

/** Placeholders for the message in MLC's role templates. */
const PLACEHOLDERS = {
  user: '{user_message}',
  assistant: '{assistant_message}',
  tool: '{tool_message}',
}

/** Placeholder for tool descriptions, which are removed; tools enter the prompt in another way. */
const TOOLS_PLACEHOLDER = '{function_string}'

/** Default separator between a role name and its content. */
const DEFAULT_SEPARATOR = ': '

/**
 * Returns a Jinja chat template, such as other models bring, that renders the same prompt as WebLLM.
 * `null` if the conversation is not a valid `conv_template` of MLC.
 */
function toChatTemplate(
  conversation: unknown,
  specialTokens: readonly SpecialToken[],
): string | null {
  if (!isObject(conversation)) return null
  const { system_template: system, seps, roles } = conversation
  if (typeof system !== 'string' || !isObject(roles) || !isStringArray(seps) || seps.length === 0)
    return null
  const names = Object.keys(PLACEHOLDERS) as (keyof typeof PLACEHOLDERS)[]
  const first = [conversation['system_prefix_token_ids'] ?? []]
    .flat()
    .map((id) => specialTokens.findLast((token) => token.id === Number(id))?.content ?? '')
  const hidesRole = conversation['add_role_after_system_message'] === false
  const body = names.map((role) => {
    const name = literal(
      stringOr(roles[role]) + stringOr(conversation['role_content_sep'], DEFAULT_SEPARATOR),
    )
    const prefix = hidesRole
      ? `{%- if ns.at > 0 or ns.prompt == '' -%}{{ ${name} }}{%- endif -%}`
      : `{{ ${name} }}`
    return `role == '${role}' -%}${prefix}{{ ${toExpression(messageTemplate(conversation, role), PLACEHOLDERS[role], 'content')} }}`
  })
  const prompt = toExpression(system, '{system_message}', 'ns.system')
  const isShown = conversation['render_empty_system_message'] === false ? `ns.system != ''` : 'true'
  return [
    `{%- set ns = namespace(at=0, prompt='', system=${literal(stringOr(conversation['system_message']))}) -%}`,
    `{%- if messages and messages[0]['role'] == 'system' -%}{%- set ns.system = messages[0]['content'] or '' -%}{%- endif -%}`,
    `{%- if ${isShown} -%}{%- set ns.prompt = ${prompt} -%}{%- endif -%}`,
    `{{ ${literal(first.join(''))} + ns.prompt }}`,
    `{%- for message in messages -%}{%- if not (loop.first and message['role'] == 'system') -%}`,
    // Roles without a template, such as a later system message, are rendered as user messages.
    `{%- set role = message['role'] if message['role'] in ${literal(names)} else 'user' -%}`,
    `{%- set content = message['content'] or '' -%}`,
    `{%- if ${body.join('{%- elif ')}{%- endif -%}`,
    `{{ ${literal(seps)}[ns.at % ${seps.length}] }}{%- set ns.at = ns.at + 1 -%}`,
    `{%- endif -%}{%- endfor -%}`,
    `{%- if add_generation_prompt -%}`,
    `{{ ${literal(stringOr(roles['assistant']) + stringOr(conversation['role_empty_sep'], DEFAULT_SEPARATOR))} }}{%- endif -%}`,
  ].join('')
}

/**
 * Returns the ids of the tokens that end a completion. A stop string counts only if it is a special
 * token.
 */
function findEndTokenIds(conversation: unknown, specialTokens: readonly SpecialToken[]): number[] {
  if (!isObject(conversation)) return []
  const ids = [conversation['stop_token_ids'] ?? []].flat()
  const texts = [conversation['stop_str'] ?? []].flat().map(String)
  const named = texts.map((text) => specialTokens.findLast(({ content }) => content === text)?.id)
  return [...ids, ...named].filter((id): id is number => typeof id === 'number')
}

/** Returns the template of one message of a role, without the placeholder for tools. */
function messageTemplate(
  { role_templates: templates }: Readonly<Record<string, unknown>>,
  role: keyof typeof PLACEHOLDERS,
): string {
  const template = isObject(templates) ? templates[role] : undefined
  return stringOr(template, PLACEHOLDERS[role]).replace(TOOLS_PLACEHOLDER, '')
}

/** Returns a Jinja expression for the text in which a variable replaces the placeholder. */
function toExpression(text: string, placeholder: string, variable: string): string {
  const [before = '', ...after] = text.split(placeholder)
  if (after.length === 0) return literal(text)
  return `${literal(before)} + ${variable} + ${literal(after.join(placeholder))}`
}

const literal = (value: string | readonly string[]): string => JSON.stringify(value)

const stringOr = (value: unknown, otherwise = ''): string =>
  typeof value === 'string' ? value : otherwise

const isStringArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')
