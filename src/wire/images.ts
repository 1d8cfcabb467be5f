/** Schemas of images in messages. Image data comes in the body, or the host fetches it from a URL. */
import * as v from 'valibot'
import type { Image, UserMessage } from '../types/index.ts'
import { fromBase64 } from '../values/bytes.ts'
import * as f from './fields.ts'

const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** Refuses an image in a message that is not of role user. */
export const rejectedImage = f.rejectedWith('put images into a message of role user')

/** Accepts an image in base64 and decodes it. */
const base64 = v.pipe(
  f.stringOf('a string in base64'),
  decodedBy('an image in base64', decodeImage),
)

/** Maximum length of the URL of an image that is fetched. */
const MAX_URL_CHARACTERS = 8_192

const imageUrl = v.pipe(
  f.stringOf('a URL'),
  decodedBy(
    `a data: URL in base64 of one of ${MEDIA_TYPES.join(', ')}, or an https: URL`,
    (url) => {
      if (/^https?:\/\//i.test(url)) return toRemoteImage(url)
      const comma = url.indexOf(',')
      const mediaType = parseMediaType(url.slice(0, Math.max(comma, 0)))
      const bytes = mediaType && decodeImage(url.slice(comma + 1))
      return bytes && { mediaType, bytes }
    },
  ),
)

/** Replaces a string by what `decode` returns, or refuses it if that is nothing. */
function decodedBy<T extends object>(message: string, decode: (text: string) => T | undefined) {
  const rule = v.lazy((text) => {
    const decoded = decode(text as string)
    return decoded ? f.replacedBy(decoded) : f.refusedAs(message)
  })
  return rule as v.GenericSchema<string, T>
}

function toRemoteImage(url: string): Pick<Image, 'url' | 'mediaType' | 'bytes'> | undefined {
  if (url.length > MAX_URL_CHARACTERS || !URL.canParse(url)) return undefined
  return { url, mediaType: 'application/octet-stream', bytes: new Uint8Array() }
}

/** Returns the media type of a data URL in base64. The head of one may be megabytes long. */
function parseMediaType(head: string): Image['mediaType'] | undefined {
  const isBase64 = head.slice(-';base64'.length).toLowerCase() === ';base64'
  if (!isBase64 || head.slice(0, 'data:'.length).toLowerCase() !== 'data:') return undefined
  const name = head.slice('data:'.length, head.indexOf(';')).toLowerCase()
  return MEDIA_TYPES.find((type) => type === (name === 'image/jpg' ? 'image/jpeg' : name))
}

function decodeImage(text: string): Image['bytes'] | undefined {
  try {
    const bytes = fromBase64(text)
    return bytes.length > 0 ? bytes : undefined
  } catch {
    return undefined
  }
}

const detail = f.optional(f.oneOf(['auto', 'low', 'high', 'original']))

/** Fields of a part of a chat message. */
export const chatImage = { image_url: f.stringOr(imageUrl, f.object({ url: imageUrl, detail })) }

/** Fields of a part of an input item of a response. */
export const inputImage = { image_url: imageUrl, detail, file_id: f.rejectedField }

/** Fields of a block of a message in the Anthropic style. */
export const imageBlock = {
  source: f.taggedUnion('type', {
    base64: { media_type: f.oneOf(MEDIA_TYPES), data: base64 },
    url: { url: imageUrl },
    file: f.rejected,
  }),
}

type ImagePart =
  | {
      image_url: v.InferOutput<typeof chatImage.image_url | typeof imageUrl>
      detail?: v.InferOutput<typeof detail>
    }
  | { source: v.InferOutput<typeof imageBlock.source> }

/** Part of a user message: a text, or an image with its path in the body. */
export type UserContent = string | Omit<Image, 'at'>

/** Converts an image part of any style. */
export function toImage(part: ImagePart, path: string): UserContent {
  if ('image_url' in part) {
    const { image_url: imageField } = part
    if ('bytes' in imageField) return { ...imageField, ...toDetail(part), place: path }
    return { ...imageField.url, ...toDetail(imageField), place: path }
  }
  const { source } = part
  if (source.type === 'url') return { ...source.url, place: path }
  return { mediaType: source.media_type, bytes: source.data, place: path }
}

/** `original` is the same as `high`, and `auto` as no detail. */
function toDetail(part: { detail?: v.InferOutput<typeof detail> }): Pick<Image, 'detail'> {
  if (!part.detail || part.detail === 'auto') return {}
  return { detail: part.detail === 'low' ? 'low' : 'high' }
}

/** Joins texts and images to one user message. */
export function toUserMessage(parts: readonly UserContent[]): UserMessage {
  let content = ''
  const images: Image[] = []
  for (const part of parts) {
    if (typeof part === 'string') content += part
    else images.push({ ...part, at: content.length })
  }
  return { role: 'user', content, ...(images.length > 0 && { images }) }
}
