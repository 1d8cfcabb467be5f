/**
 * Encodes one server-sent event. JSON has no raw line breaks, so one `data:` line is enough.
 * OpenAI's clients need no event name; Anthropic's drop events without one.
 */
export function frame(data: unknown, name?: string): string {
  const head = name === undefined ? '' : `event: ${name}\n`
  return `${head}data: ${JSON.stringify(data)}\n\n`
}

/** Sentinel that ends a chat stream, the only `data:` that is not JSON. */
export const DONE = 'data: [DONE]\n\n'

/** Encodes a comment. Clients skip it, but it keeps the connection alive. */
export function comment(text: string): string {
  return `: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`
}
