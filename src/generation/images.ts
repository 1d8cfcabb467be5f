import { InoriginError } from '../error.ts'
import type { GenerationRequest } from '../types/index.ts'

/**
 * Throws `invalid_request` if a message has an image. The error names the first one by its path.
 */
export function refuseImages({ messages, model }: GenerationRequest): void {
  for (const message of messages) {
    const image = message.role === 'user' ? message.images?.[0] : undefined
    if (!image) continue
    const { place } = image
    throw new InoriginError(
      'invalid_request',
      `\`${place}\` is an image, but ${model} does not accept images. Leave it out, or use a ` +
        'model that has the capability image_input in /v1/models.',
      { code: 'unsupported_parameter', param: place, details: { unsupported: [place] } },
    )
  }
}
