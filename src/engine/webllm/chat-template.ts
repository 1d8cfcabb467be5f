/** Converts MLC's `conv_template` into a Jinja chat template, such as other models bring. */
import { isObject } from '../../values/objects.ts'

type ConversationTemplate = Readonly<Record<string, unknown>>

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
 * Returns a chat template that renders the same prompt as WebLLM, or `null` if the conversation is
 * not a valid `conv_template`. `nameOf` returns the text of a special token by its id.
 */
export function toChatTemplate(
  conversation: unknown,
  nameOf: (id: number) => string | undefined,
): string | null {
  if (!isObject(conversation)) return null
  const { system_template: system, seps, roles } = conversation
  if (typeof system !== 'string' || !isObject(roles) || !isStringArray(seps) || seps.length === 0)
    return null
  const names = Object.keys(PLACEHOLDERS) as (keyof typeof PLACEHOLDERS)[]
  const first = [conversation['system_prefix_token_ids'] ?? []]
    .flat()
    .map((id) => nameOf(Number(id)) ?? '')
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
 * token, whose id `idOf` returns.
 */
export function findEndTokenIds(
  conversation: unknown,
  idOf: (text: string) => number | undefined,
): number[] {
  if (!isObject(conversation)) return []
  const ids = [conversation['stop_token_ids'] ?? []].flat()
  const texts = [conversation['stop_str'] ?? []].flat().map((text) => idOf(String(text)))
  return [...ids, ...texts].filter((id): id is number => typeof id === 'number')
}

/** Returns the template of one message of a role, without the placeholder for tools. */
function messageTemplate(
  { role_templates: templates }: ConversationTemplate,
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
