/** The embedded model that sees, and what it is shown in a run of the clients. */
import { circlePng } from '../support/image-files.ts'
import type { Seer } from './client.ts'

/** One tile of 64 squares and 80 letters, and the three markers around it. */
const TOKENS = 147

export const SEER: Seer = {
  model: '@inorigin/glance',
  question: 'What color is the circle?',
  images: [
    { data: circlePng([214, 39, 40]).toString('base64'), color: 'red' },
    { data: circlePng([30, 80, 220]).toString('base64'), color: 'blue' },
  ],
  tokens: TOKENS,
}
