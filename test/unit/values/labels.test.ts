import { expect, test } from 'vitest'
import { parseLabels } from '../../../src/predictor/labels.ts'

test.each<[string, readonly string[] | null]>([
  ['cat\ndog\n', ['cat', 'dog']],
  ['cat\r\ndog', ['cat', 'dog']],
  // A recognizer's characters, of which one is a space.
  ["'\n \n[", ["'", ' ', '[']],
  ['[\n]', ['[', ']']],
  ['["cat", "dog"]', ['cat', 'dog']],
  ['{"0": "cat", "1": "dog"}', ['cat', 'dog']],
  ['{"dog": 1, "cat": 0}', ['cat', 'dog']],
  [`{0: 'cat', 1: "dog's", 2: 'hot \\'dog\\''}`, ['cat', "dog's", "hot 'dog'"]],
  ['{"0": "cat", "2": "dog"}', null],
  ['', null],
])('%j is %j', (text, labels) => {
  expect(parseLabels(text)).toEqual(labels)
})
