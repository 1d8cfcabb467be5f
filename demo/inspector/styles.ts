/** The API styles between which the inspector translates, and the path of each. */
import { completions } from '../wire/completions.ts'
import { messages } from '../wire/messages.ts'
import { responses } from '../wire/responses.ts'
import type { Question, WireRequest, WireStyle } from '../wire/style.ts'

export const STYLES = {
  'chat/completions': completions,
  messages,
  responses,
} as const satisfies Record<string, WireStyle>

export type StylePath = keyof typeof STYLES

/** Returns the same request in another style; `undefined` if its question is not known. */
export function inStyle(
  path: StylePath,
  request: WireRequest,
  question: Question | undefined,
): WireRequest | undefined {
  if (request.path === path) return request
  return question && STYLES[path].request(question)
}
