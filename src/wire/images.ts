/** Images in messages: taken as they are sent, never fetched. */
import * as v from 'valibot'
import type { Image, UserMessage } from '../types/index.ts'
import { fromBase64 } from './base64.ts'
import { never, not, object, oneOf, optional, tagged } from './fields.ts'

const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

type Picture = Pick<Image, 'mediaType' | 'bytes'>

/** Only users show something. */
export const noImage = not('put images into a message of role user')

/** The bytes of a text in base64. */
const base64 = v.pipe(
  v.string('a string in base64'),
  v.rawTransform<string, Image['bytes']>(({ dataset, addIssue, NEVER }) => {
    const bytes = bytesOf(dataset.value)
    if (bytes) return bytes
    addIssue({ message: 'an image in base64' })
    return NEVER
  }),
)

const picture = v.pipe(
  v.string('a data: URL'),
  v.check((url) => !/^(?:https?:)?\/\//i.test(url), 'nothing is fetched; send a data: URL'),
  v.rawTransform<string, Picture>(({ dataset, addIssue, NEVER }) => {
    const url = dataset.value
    const comma = url.indexOf(',')
    const mediaType = typeIn(url.slice(0, Math.max(comma, 0)))
    const bytes = mediaType && bytesOf(url.slice(comma + 1))
    if (mediaType && bytes) return { mediaType, bytes }
    addIssue({ message: `a data: URL in base64 of one of ${TYPES.join(', ')}` })
    return NEVER
  }),
)

/** Returns the type in the head of a data URL in base64. A pattern would overflow on a head of megabytes. */
function typeIn(head: string): Image['mediaType'] | undefined {
  const isBase64 = head.slice(-';base64'.length).toLowerCase() === ';base64'
  if (!isBase64 || head.slice(0, 'data:'.length).toLowerCase() !== 'data:') return undefined
  const name = head.slice('data:'.length, head.indexOf(';')).toLowerCase()
  return TYPES.find((type) => type === (name === 'image/jpg' ? 'image/jpeg' : name))
}

function bytesOf(text: string): Image['bytes'] | undefined {
  try {
    const bytes = fromBase64(text)
    return bytes.length > 0 ? bytes : undefined
  } catch {
    return undefined
  }
}

const urlObject = object({ url: picture })
const url = v.lazy((input): typeof picture | typeof urlObject =>
  typeof input === 'string' ? picture : urlObject,
)

/** A part of a chat message; its `detail` changes nothing. */
export const chatImage = object({ type: v.literal('image_url'), image_url: url })

/** A part of an item of a response's input. */
export const inputImage = object({
  type: v.literal('input_image'),
  image_url: picture,
  file_id: optional(never),
})

/** A block of a message. */
export const imageBlock = object({
  type: v.literal('image'),
  source: tagged('type', {
    base64: object({ type: v.literal('base64'), media_type: oneOf(TYPES), data: base64 }),
    url: object({ type: v.literal('url'), url: picture }),
    file: never,
  }),
})

type ImagePart =
  | v.InferOutput<typeof chatImage>
  | v.InferOutput<typeof inputImage>
  | v.InferOutput<typeof imageBlock>

/** What a user says and shows, in order: a text, or an image and where the body has it. */
export type Spoken = string | Omit<Image, 'at'>

/** An image of any style. */
export function imageOf(part: ImagePart, place: string): Spoken {
  if (part.type !== 'image') {
    const { image_url: given } = part
    return { ...('url' in given ? given.url : given), place }
  }
  const { source } = part
  if (source.type === 'url') return { ...source.url, place }
  return { mediaType: source.media_type, bytes: source.data, place }
}

/** A user's message of what was said and shown. */
export function userMessage(spoken: readonly Spoken[]): UserMessage {
  let content = ''
  const images: Image[] = []
  for (const part of spoken) {
    if (typeof part === 'string') content += part
    else images.push({ ...part, at: content.length })
  }
  return { role: 'user', content, ...(images.length > 0 && { images }) }
}
