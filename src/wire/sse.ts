/**
 * One server-sent event. JSON holds no raw line break, so a single `data:` line always does.
 * Without a name it is what OpenAI's clients read; Anthropic's drop events that have none.
 */
export function frame(data: unknown, name?: string): string {
  const head = name === undefined ? '' : `event: ${name}\n`
  return `${head}data: ${JSON.stringify(data)}\n\n`
}

/** The sentinel that ends a chat stream; the one `data:` that is not JSON. */
export const DONE = 'data: [DONE]\n\n'

/** A line every client skips, which keeps the connection visibly alive. */
export function comment(text: string): string {
  return `: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`
}
