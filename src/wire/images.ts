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
    const [head = '', type = ''] =
      /^data:image\/(\w+)(?:;[^;,]*)*;base64,/i.exec(dataset.value) ?? []
    const mediaType = typeOf(type)
    const bytes = mediaType && bytesOf(dataset.value.slice(head.length))
    if (mediaType && bytes) return { mediaType, bytes }
    addIssue({ message: `a data: URL in base64 of one of ${TYPES.join(', ')}` })
    return NEVER
  }),
)

function typeOf(subtype: string): Image['mediaType'] | undefined {
  const name = `image/${subtype.toLowerCase().replace(/^jpg$/, 'jpeg')}`
  return TYPES.find((type) => type === name)
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
  type: v.literal('input_image'), image_url: picture, file_id: optional(never),
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
