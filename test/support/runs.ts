/** How often a test of random inputs runs. */
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** `true` in the mode `all`. */
    runsAll: boolean
  }
}

/** Returns the first number of runs in `npm test`, the second in `npm run test:all` and `test:slow`. */
export const runs = (everyday: number, all: number): number => (inject('runsAll') ? all : everyday)
