import { wordsOf } from '../notice.ts'
import { isPlain, troubleWith } from '../trouble.ts'

/** Returns what an error of a request means for the user. */
export function explain(error: unknown): string {
  if (isPlain(error)) return troubleWith('the model', error)
  // `fetch` throws a TypeError if the service worker has stopped or lost control of the page.
  if (!(error instanceof TypeError)) return wordsOf(error)
  return `The server in this page did not answer (${error.message}). Ask again, or reload the page.`
}
