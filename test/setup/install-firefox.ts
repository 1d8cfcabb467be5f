/** `npm run test:firefox` runs this first, so that its tests are not skipped. */
import { ensureFirefox } from './firefox.ts'

ensureFirefox()
