import { InoriginError } from '../error.ts'
import type { GenerationRequest } from '../types/index.ts'

/** Refuses images where no one would look at them, naming the first by its place in the body. */
export function refuseImages({ messages, model }: GenerationRequest): void {
  for (const message of messages) {
    const image = message.role === 'user' ? message.images?.[0] : undefined
    if (!image) continue
    const { place } = image
    throw new InoriginError(
      'invalid_request',
      `\`${place}\` is an image, and ${model} takes none; leave it out, or ask a model whose ` +
        'capabilities in /v1/models have image_input.',
      { code: 'unsupported_parameter', param: place, details: { unsupported: [place] } },
    )
  }
}
