/** The request as code for the clients that people use. Every piece runs as it is. */
import { indent, literal, quote, snippet } from '../wire/snippet.ts'
import type { WireRequest } from '../wire/style.ts'
import type { StylePath } from './styles.ts'

export interface CodeKind {
  id: string
  label: string
  /** Style that the client speaks; `undefined` if it sends any request. */
  path?: StylePath
  write(url: string, request: WireRequest): string
}

export const CODE_KINDS: readonly CodeKind[] = [
  { id: 'fetch', label: 'fetch', write: snippet },
  { id: 'openai', label: 'OpenAI SDK', path: 'chat/completions', write: openai },
  { id: 'anthropic', label: 'Anthropic SDK', path: 'messages', write: anthropic },
  { id: 'ai', label: 'AI SDK', path: 'chat/completions', write: aiSdk },
  { id: 'curl', label: 'curl', write: curl },
]

/** URL of `inorigin bridge`, by which programs outside the browser reach a tab. */
const BRIDGE = 'http://127.0.0.1:11435'

/** Returns the URL of the folder in which the path of the request lies, without a slash. */
const baseOf = (url: string, path: string): string => url.slice(0, -path.length - 1)

function openai(url: string, { path, body }: WireRequest): string {
  return `import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: ${quote(baseOf(url, path))},
  apiKey: 'none',
  dangerouslyAllowBrowser: true,
})
const stream = await client.chat.completions.create(${literal(body)})
for await (const chunk of stream) {
  console.log(chunk.choices[0]?.delta.content ?? '')
}
`
}

function anthropic(url: string, { path, body }: WireRequest): string {
  return `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({
  baseURL: ${quote(baseOf(url, path).replace(/\/v1$/, ''))},
  apiKey: 'none',
  dangerouslyAllowBrowser: true,
})
const stream = await client.messages.create(${literal(body)})
for await (const event of stream) {
  if (event.type !== 'content_block_delta') continue
  if (event.delta.type === 'text_delta') console.log(event.delta.text)
}
`
}

interface Turn {
  role: string
  content: string | { type: string; text?: string; image_url?: { url: string } }[]
}

/** Fields of a body of chat completions that the AI SDK has under another name. */
const AI_SDK_NAMES: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  stop: 'stopSequences',
  seed: 'seed',
  max_completion_tokens: 'maxOutputTokens',
}

/** Fields that the snippet has elsewhere, or that the AI SDK sends by itself. */
const AI_SDK_KNOWN = new Set(['model', 'messages', 'stream', 'stream_options'])

function aiSdk(url: string, { path, body }: WireRequest): string {
  const fields = Object.entries(body).filter(([, value]) => value !== undefined)
  const turns = (body['messages'] ?? []) as Turn[]
  const system = turns.find(({ role }) => role === 'system')?.content
  const messages = turns.filter(({ role }) => role !== 'system').map(toAiMessage)
  const settings = fields.flatMap(([name, value]) => {
    const known = AI_SDK_NAMES[name]
    return known ? [[known, name === 'stop' ? [value].flat() : value] as const] : []
  })
  const lost = fields.map(([name]) => name).filter((n) => !AI_SDK_KNOWN.has(n) && !AI_SDK_NAMES[n])
  const options = { ...(system && { system }), messages, ...Object.fromEntries(settings) }
  const note = lost.length > 0 ? `// This code leaves out: ${lost.join(', ')}.\n` : ''
  return `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'

const provider = createOpenAICompatible({ name: 'page', baseURL: ${quote(baseOf(url, path))} })
${note}const { textStream } = streamText({
  model: provider(${literal(body['model'])}),
  ...${indent(literal(options))},
})
for await (const text of textStream) console.log(text)
`
}

function toAiMessage({ role, content }: Turn): object {
  if (typeof content === 'string') return { role, content }
  const parts = content.map(({ type, text, image_url }) =>
    type === 'image_url' ? { type: 'image', image: image_url?.url } : { type: 'text', text },
  )
  return { role, content: parts }
}

/** Returns a command for a terminal. It reaches the tab through `inorigin bridge`. */
function curl(url: string, { headers, body }: WireRequest): string {
  const { pathname } = new URL(url)
  const path = pathname.slice(pathname.lastIndexOf('/v1/'))
  const lines = [
    `curl --no-buffer ${BRIDGE}${path}`,
    ...Object.entries(headers).map(([name, value]) => `  -H ${shellQuote(`${name}: ${value}`)}`),
    `  -d ${shellQuote(JSON.stringify(body, null, 2))}`,
  ]
  return `# First run: npx inorigin bridge --open\n${lines.join(' \\\n')}\n`
}

const shellQuote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
