/** Writes the content of messages as a list of parts, which templates of models with images read. */
import type { UserMessage } from '../../types/index.ts'

/** Part of a message in the form that templates read. */
type ContentPart = { type: 'text'; text: unknown } | { type: 'image' }

/** Returns the texts and images of a message, in order. Empty texts are left out. */
export function toContentParts({ content, images = [] }: UserMessage): ContentPart[] {
  const parts: ContentPart[] = []
  let from = 0
  const addText = (to: number): void => {
    if (to > from) parts.push({ type: 'text', text: content.slice(from, to) })
    from = to
  }
  for (const { at } of images) {
    addText(at)
    parts.push({ type: 'image' })
  }
  addText(content.length)
  return parts
}

/** Returns a template's message whose content is a list of parts. */
export const withParts = (message: Record<string, unknown>): Record<string, unknown> =>
  Array.isArray(message['content'])
    ? message
    : { ...message, content: [{ type: 'text', text: message['content'] ?? '' }] }
