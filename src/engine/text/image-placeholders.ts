/** Puts images into prompts, in the places that the chat template wrote for them. */
import { InoriginError } from '../../error.ts'
import type { Conversation } from '../engine.ts'
import type { PromptImage } from '../images.ts'

/** Returns the images of a conversation, in order. */
export const listImages = ({ messages, images }: Conversation): PromptImage[] =>
  images
    ? messages.flatMap((message) =>
        message.role === 'user'
          ? (message.images ?? []).flatMap(({ place }) => images.get(place) ?? [])
          : [],
      )
    : []

/** Replacer of `JSON.stringify` that leaves out the bytes of images. */
export const textOnly = (_: string, value: unknown): unknown =>
  ArrayBuffer.isView(value) ? undefined : value

/**
 * Throws `invalid_request` unless the template wrote one token for each image. Text of a user cannot
 * become that token.
 */
export function assertPlaced(
  images: readonly PromptImage[],
  sections: readonly { text: string; id: number | null }[],
  placeholder: string | undefined,
): void {
  if (images.length === 0) return
  const places = sections.filter(({ text, id }) => id !== null && text === placeholder).length
  if (places === images.length) return
  throw new InoriginError(
    'invalid_request',
    `The chat template of this model has places for ${places} of the ${images.length} images. ` +
      'Leave images out, or use another model.',
    { code: 'template_refused', param: 'messages' },
  )
}

/** Returns the tokens and the numbers of rows that stand for an image. */
export function expandImage(
  { pieces, firstRow }: PromptImage,
  encode: (text: string) => readonly number[],
): number[] {
  let row = firstRow
  const tokens: number[] = []
  let text = ''
  const flush = (): void => {
    tokens.push(...encode(text))
    text = ''
  }
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      // Texts in a row are one text for the tokenizer.
      text += piece
      continue
    }
    flush()
    for (const end = row + piece; row < end; row += 1) tokens.push(row)
  }
  flush()
  return tokens
}
