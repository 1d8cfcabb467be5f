/** The way to write a conversation that MLC keeps of a model, as the template that others have. */
import { isObject } from '../schema/node.ts'

type Conversation = Readonly<Record<string, unknown>>

/** What stands for a message in what MLC writes around it. */
const PLACES = { user: '{user_message}', assistant: '{assistant_message}', tool: '{tool_message}' }

/** What stands for descriptions of tools, which are written in other ways here. */
const TOOLS = '{function_string}'

/** What MLC writes behind a name where it is not told. */
const COLON = ': '

/**
 * A chat template that writes what WebLLM would. `nameOf` gives the text of a special token, by its id.
 * `null` where there is no such way.
 */
export function templateOf(
  conversation: unknown,
  nameOf: (id: number) => string | undefined,
): string | null {
  if (!isObject(conversation)) return null
  const { system_template: system, seps, roles } = conversation
  if (typeof system !== 'string' || !isObject(roles) || !areTexts(seps) || seps.length === 0)
    return null
  const names = Object.keys(PLACES) as (keyof typeof PLACES)[]
  const first = [conversation['system_prefix_token_ids'] ?? []]
    .flat()
    .map((id) => nameOf(Number(id)) ?? '')
  const isBare = conversation['add_role_after_system_message'] === false
  const body = names.map((role) => {
    const name = literal(textOf(roles[role]) + textOf(conversation['role_content_sep'], COLON))
    const prefix = isBare
      ? `{%- if ns.at > 0 or ns.prompt == '' -%}{{ ${name} }}{%- endif -%}`
      : `{{ ${name} }}`
    return `role == '${role}' -%}${prefix}{{ ${around(messageOf(conversation, role), PLACES[role], 'content')} }}`
  })
  const prompt = around(system, '{system_message}', 'ns.system')
  const isShown = conversation['render_empty_system_message'] === false ? `ns.system != ''` : 'true'
  return [
    `{%- set ns = namespace(at=0, prompt='', system=${literal(textOf(conversation['system_message']))}) -%}`,
    `{%- if messages and messages[0]['role'] == 'system' -%}{%- set ns.system = messages[0]['content'] or '' -%}{%- endif -%}`,
    `{%- if ${isShown} -%}{%- set ns.prompt = ${prompt} -%}{%- endif -%}`,
    `{{ ${literal(first.join(''))} + ns.prompt }}`,
    `{%- for message in messages -%}{%- if not (loop.first and message['role'] == 'system') -%}`,
    // What has no name of its own, such as a later word of the system, is the user's.
    `{%- set role = message['role'] if message['role'] in ${literal(names)} else 'user' -%}`,
    `{%- set content = message['content'] or '' -%}`,
    `{%- if ${body.join('{%- elif ')}{%- endif -%}`,
    `{{ ${literal(seps)}[ns.at % ${seps.length}] }}{%- set ns.at = ns.at + 1 -%}`,
    `{%- endif -%}{%- endfor -%}`,
    `{%- if add_generation_prompt -%}`,
    `{{ ${literal(textOf(roles['assistant']) + textOf(conversation['role_empty_sep'], COLON))} }}{%- endif -%}`,
  ].join('')
}

/** Ids of the tokens with which an answer ends; texts are such where one of the special tokens is it. */
export function endsOf(
  conversation: unknown,
  idOf: (text: string) => number | undefined,
): number[] {
  if (!isObject(conversation)) return []
  const ids = [conversation['stop_token_ids'] ?? []].flat()
  const texts = [conversation['stop_str'] ?? []].flat().map((text) => idOf(String(text)))
  return [...ids, ...texts].filter((id): id is number => typeof id === 'number')
}

/** What is written of a message, without what describes tools. */
function messageOf({ role_templates: templates }: Conversation, role: keyof typeof PLACES): string {
  const template = isObject(templates) ? templates[role] : undefined
  return textOf(template, PLACES[role]).replace(TOOLS, '')
}

/** An expression: the text with the value of a variable in its place. */
function around(text: string, place: string, variable: string): string {
  const [before = '', ...after] = text.split(place)
  if (after.length === 0) return literal(text)
  return `${literal(before)} + ${variable} + ${literal(after.join(place))}`
}

const literal = (value: string | readonly string[]): string => JSON.stringify(value)

const textOf = (value: unknown, otherwise = ''): string =>
  typeof value === 'string' ? value : otherwise

const areTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')
