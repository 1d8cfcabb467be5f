import { jsonCallTag, type ToolFormat, writeJsonCall } from './format.ts'
import { OPEN, taggedFormat } from './tagged.ts'

/**
 * The format of Hermes, Qwen 2.5 and 3, SmolLM3 and Granite 4: a JSON object in `<tool_call>` tags
 * for each call. Models without a format of their own use it, too.
 */
export const hermes: ToolFormat = {
  name: 'hermes',
  // Other formats use the same tags around different content.
  detect: (template) => template.includes(OPEN) && /["']arguments\\?["']:/.test(template),
  ...taggedFormat(jsonCallTag('arguments'), writeJsonCall('arguments')),
}
