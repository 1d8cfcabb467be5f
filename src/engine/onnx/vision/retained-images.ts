/** Images that prompts in progress retain. */
import { InoriginError } from '../../../error.ts'
import type { PromptImage } from '../../images.ts'
import type { KnownImage } from './image-identities.ts'

/** An image with the facts about it. */
export interface DescribedImage {
  image: PromptImage
  known: KnownImage
}

export interface RetainedImages {
  /** Retains images. Returns the function that releases them again. */
  retain(images: readonly DescribedImage[]): () => void
  /** Returns the retained image that has this row. Throws `internal` if there is none. */
  find(row: number): DescribedImage
}

/** Creates an empty list. `onRelease` is called when the last prompt has released an image. */
export function createRetainedImages(onRelease: (image: PromptImage) => void): RetainedImages {
  const entries = new Map<number, DescribedImage & { users: number }>()

  function release(image: PromptImage): void {
    const entry = entries.get(image.firstRow)
    if (!entry) return
    entry.users -= 1
    if (entry.users > 0) return
    entries.delete(image.firstRow)
    onRelease(image)
  }

  return {
    retain(images) {
      for (const { image, known } of images) {
        const entry = entries.get(image.firstRow)
        if (entry) entry.users += 1
        else entries.set(image.firstRow, { image, known, users: 1 })
      }
      return () => {
        for (const { image } of images) release(image)
      }
    },
    find(row) {
      for (const entry of entries.values()) {
        const { firstRow, rowCount } = entry.known
        if (row >= firstRow && row < firstRow + rowCount) return entry
      }
      throw new InoriginError('internal', 'The prompt has an image that no request retains.')
    },
  }
}
