import { constant, framed, jsonTag, type ToolFormat, writeJson } from './format.ts'
import { BETWEEN, CLOSE, OPEN, readTagged } from './tagged.ts'

/**
 * A JSON object in `<tool_call>` tags, for each call: Hermes, Qwen 2.5 and 3, SmolLM3, Granite 4, and
 * whatever model has no format of its own.
 */
export const hermes: ToolFormat = {
  name: 'hermes',
  // Others have the same tags around something else.
  detect: (template) => template.includes(OPEN) && /["']arguments\\?["']:/.test(template),
  markers: [OPEN, CLOSE],
  triggers: [OPEN],
  ...framed(
    { trigger: OPEN, lead: constant('\n'), separator: BETWEEN, close: `\n${CLOSE}` },
    jsonTag('arguments'),
  ),
  read: readTagged,
  write: (calls) => `${OPEN}\n${calls.map(writeJson('arguments')).join(BETWEEN)}\n${CLOSE}`,
}
