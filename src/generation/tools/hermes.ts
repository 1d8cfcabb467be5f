import {
  constant,
  framedConstraints,
  jsonCallTag,
  type ToolFormat,
  writeJsonCall,
} from './format.ts'
import { BETWEEN, CLOSE, OPEN, readTagged } from './tagged.ts'

/**
 * The format of Hermes, Qwen 2.5 and 3, SmolLM3 and Granite 4: a JSON object in `<tool_call>` tags
 * for each call. Models without a format of their own use it, too.
 */
export const hermes: ToolFormat = {
  name: 'hermes',
  // Other formats use the same tags around different content.
  detect: (template) => template.includes(OPEN) && /["']arguments\\?["']:/.test(template),
  markers: [OPEN, CLOSE],
  triggers: [OPEN],
  ...framedConstraints(
    { trigger: OPEN, lead: constant('\n'), separator: BETWEEN, close: `\n${CLOSE}` },
    jsonCallTag('arguments'),
  ),
  read: readTagged,
  write: (calls) => `${OPEN}\n${calls.map(writeJsonCall('arguments')).join(BETWEEN)}\n${CLOSE}`,
}
