import {
  constant,
  framedConstraints,
  jsonCallTag,
  type ToolFormat,
  writeJsonCall,
} from './format.ts'
import { readList, readObject } from './json.ts'

const TRIGGER = '<|tool_call|>'

/** The format of Granite 3: a JSON list after `<|tool_call|>`. */
export const granite: ToolFormat = {
  name: 'granite',
  detect: (template) => template.includes(TRIGGER),
  markers: [TRIGGER],
  triggers: [TRIGGER],
  ...framedConstraints(
    { trigger: TRIGGER, lead: constant('['), separator: ', ', close: ']' },
    jsonCallTag('arguments'),
  ),
  read: (source, sink) => readList(source, sink, readObject),
  write: (calls) => `${TRIGGER}[${calls.map(writeJsonCall('arguments')).join(', ')}]`,
}
