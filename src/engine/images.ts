/**
 * Images in prompts. A prompt is a list of numbers: token ids, and one number for each row of
 * floats that an image becomes. The numbers of two images never overlap, so that a prefix cache
 * that compares numbers also compares images.
 */

/** First number that stands for a row of an image. All token ids are smaller. */
export const FIRST_IMAGE_ROW = 2 ** 32

/** Returns `true` if a number of a prompt stands for a row of an image. */
export const isImageRow = (token: number): boolean => token >= FIRST_IMAGE_ROW

/** Returns the tokens without those that stand for rows of images. */
export const withoutImageRows = (tokens: readonly number[]): readonly number[] =>
  tokens.some(isImageRow) ? tokens.filter((token) => !isImageRow(token)) : tokens

/** Resolution at which a model sees an image. `high` costs a multiple of the tokens and the time. */
export type ImageDetail = 'low' | 'high'

/** An encoded image with what its header tells. */
export interface ImageInput {
  bytes: Uint8Array<ArrayBuffer>
  mediaType: string
  /** Width and height in pixels, as the file's header gives them. */
  size: readonly [width: number, height: number]
  /** Default: the model's own, which is `low` unless its catalog entry says otherwise. */
  detail?: ImageDetail
  /** SHA-256 of the bytes. */
  digest: string
  /** Name of the part of the prefix cache that may share the image. */
  partition: string
  /** Path of the image in the request, for error messages. */
  place: string
}

/** Places of the rows of an image, row by row. */
export interface ImageGrid {
  columns: number
  rows: number
}

/** Text in which special tokens count, or a number of rows of the image. */
export type PromptPiece = string | number

/** An image in a prompt. */
export interface PromptImage {
  /** Pieces of the prompt that replace the one token that the chat template wrote. */
  readonly pieces: readonly PromptPiece[]
  /** Number that stands for the first row; the other rows follow. */
  readonly firstRow: number
  readonly rowCount: number
  readonly input: ImageInput
}

/** Turns encoded images into parts of prompts. */
export interface ImageReader {
  /** Text of the token that the chat template writes in place of an image. */
  readonly placeholder: string
  /** Describes an image from its header. The same image of a partition gets the same numbers. */
  describe(image: ImageInput): PromptImage
  /** Resolves if the image can be decoded. Rejects with `invalid_request` otherwise. */
  assertReadable(image: PromptImage): Promise<void>
  /** Keeps images until the result is called, so that their rows can be computed. */
  retain(images: readonly PromptImage[]): () => void
}
