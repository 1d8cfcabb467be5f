/** Contract of a family of models that see images. */
import type { Pixels, ResampleFilter } from '../../../values/resample.ts'
import type { ImageDetail, ImageGrid, PromptPiece } from '../../images.ts'

/** Width and height in pixels. */
export type Extent = readonly [width: number, height: number]

/** The pieces of a prompt for one image. They follow from the size of the image alone. */
export interface ImageArrangement {
  /** Pieces of the prompt, in order. Their numbers are counts of rows. */
  pieces: readonly PromptPiece[]
  /** Rows that each run of the encoder makes, in order. */
  runs: readonly number[]
  /**
   * Places of the rows, row by row, if the decoder knows them by their positions on three axes.
   * Default: a row is placed like a token.
   */
  grid?: ImageGrid
}

/** A decoded image, upright and opaque. */
export interface Picture {
  /** Returns the image scaled as Pillow does. */
  resize(size: Extent, filter: ResampleFilter): Pixels
  close(): void
}

/** Input of the encoder. It becomes a tensor of the type that the graph wants. */
export interface EncoderInput {
  type: 'float' | 'bool' | 'int64'
  data: Float32Array | Uint8Array | BigInt64Array
  dims: readonly number[]
}

/** Inputs of one run of the encoder, by name. */
export type EncoderInputs = Readonly<Record<string, EncoderInput>>

/** One family: how an image becomes a part of a prompt, and inputs of the encoder. */
export interface VisionFamily {
  /** Text of the token that the chat template writes in place of an image. */
  readonly placeholder: string
  /** Detail of an image that requests none. */
  readonly defaultDetail: ImageDetail
  /** Largest ratio of the longer to the shorter side. Default: all images are accepted. */
  readonly maxAspectRatio?: number
  /** `true` if arrangements have grids. Default: `false`. */
  readonly placesRows?: boolean
  /** Arranges an upright image of that size. */
  arrange(size: Extent, detail: ImageDetail): ImageArrangement
  /**
   * Prepares an image of that size. The result returns the inputs of one run of the encoder; it may
   * be called after the picture is closed.
   */
  prepare(picture: Picture, size: Extent, detail: ImageDetail): (run: number) => EncoderInputs
}
