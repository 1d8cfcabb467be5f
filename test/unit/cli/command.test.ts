/** The parser of a command's arguments. */
import { expect, test } from 'vitest'
import { defineCommand } from '../../../src/cli/command.ts'

const command = defineCommand({
  name: 'pack',
  operands: [],
  usage: '[options]',
  about: ['Packs.'],
  options: { fast: { type: 'boolean', about: 'Pack fast' } },
  run: ({ fast }) => (fast ? 1 : 0),
})

test('an option of the command is passed on', () => {
  expect([command.run(['--fast']), command.run([])]).toEqual([1, 0])
})

test.each(['--constructor', '--toString', '--__proto__', '--fats'])('%s is refused', (option) => {
  expect(() => command.run([option])).toThrow(`inorigin pack takes no ${option}.`)
})
