import { constant, jsonListFormat, type ToolFormat } from './format.ts'
import { readList, readObject } from './json.ts'

const TRIGGER = '<|tool_call|>'

/** The format of Granite 3: a JSON list after `<|tool_call|>`. */
export const granite: ToolFormat = {
  name: 'granite',
  detect: (template) => template.includes(TRIGGER),
  markers: [TRIGGER],
  triggers: [TRIGGER],
  ...jsonListFormat(TRIGGER, constant('[')),
  read: (source, sink) => readList(source, sink, readObject),
}
