/**
 * A conversation in the fragment of an address. Browsers do not send the fragment, so only those
 * who have the link read it.
 */
import { pathOf, type Conversation } from '../chat/tree.ts'
import { parseJson, toJson } from './exchange-format.ts'

const PREFIX = '#chat='

/** Longest link. Mail and chat programs cut longer ones. */
const MAX_LINK_CHARACTERS = 16_000

/** Largest text that a link may become. A few bytes can be compressed text of gigabytes. */
const MAX_TEXT_BYTES = 2_000_000

/**
 * Returns a link to the chosen branch of a conversation, without its images.
 *
 * @throws Error if it would be too long.
 */
export async function toLink(conversation: Conversation, page: string): Promise<string> {
  const turns = pathOf(conversation).map((turn, at, path) => ({
    ...turn,
    parent: path[at - 1]?.id ?? null,
    images: [],
  }))
  const shared = { ...conversation, turns, chosen: {}, deleted: [] }
  const stream = new Blob([toJson([shared])]).stream()
  const packed = await new Response(
    stream.pipeThrough(new CompressionStream('deflate-raw')),
  ).arrayBuffer()
  const link = new URL(page)
  link.hash = PREFIX + toBase64Url(new Uint8Array(packed))
  if (link.href.length <= MAX_LINK_CHARACTERS) return link.href
  throw new Error(
    `The conversation is too long for a link: ${link.href.length} characters of at most ` +
      `${MAX_LINK_CHARACTERS}. Export it as JSON instead.`,
  )
}

/**
 * Resolves with the conversation of a fragment; `undefined` if it has none. It gets a new id, so
 * that a link cannot change what is stored.
 *
 * @throws Error if the link is damaged or too long.
 */
export async function fromFragment(fragment: string): Promise<Conversation | undefined> {
  if (!fragment.startsWith(PREFIX)) return undefined
  try {
    if (fragment.length > MAX_LINK_CHARACTERS) throw new Error('it is too long')
    const bytes = fromBase64Url(fragment.slice(PREFIX.length))
    const stream = new Blob([bytes]).stream()
    const text = await readBounded(stream.pipeThrough(new DecompressionStream('deflate-raw')))
    const [conversation] = parseJson(text)
    return conversation && { ...conversation, id: crypto.randomUUID() }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`The link holds no conversation that can be read: ${why}`, { cause: error })
  }
}

async function readBounded(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let count = 0
  const reader = stream.getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    count += part.value.length
    if (count > MAX_TEXT_BYTES) throw new Error(`it unpacks to more than ${MAX_TEXT_BYTES} bytes`)
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}

function toBase64Url(bytes: Uint8Array): string {
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0))
}
