/** The help of each command, compared with the documents. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ADD } from '../../../src/cli/commands/add.ts'
import { BRIDGE } from '../../../src/cli/commands/bridge.ts'
import { CREATE } from '../../../src/cli/commands/create.ts'
import { INIT } from '../../../src/cli/commands/init.ts'
import { REFRESH } from '../../../src/cli/commands/refresh.ts'
import { TYPES } from '../../../src/cli/commands/types.ts'

const FOLDERS = ['.', 'docs', ...readdirSync('templates').map((name) => `templates/${name}`)]
const TEXT = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
    .map((name) => readFileSync(`${folder}/${name}`, 'utf8')),
).join('\n')

const OPTION = /(?<![\w-])--[a-z][a-z-]*/g

const callsOf = (name: string): RegExp => new RegExp(`(?<=inorigin ${name}\\b)[^\`\\n#|]*`, 'g')

test('the help of a command lists every option that the documents use', () => {
  const used = [INIT, ADD, BRIDGE, CREATE, REFRESH, TYPES].flatMap(({ name, help }) =>
    (TEXT.replaceAll('\\\n', ' ').match(callsOf(name)) ?? [])
      .flatMap((call) => call.match(OPTION) ?? [])
      .map((option) => ({ name, option, isListed: help.join('\n').includes(option) })),
  )
  expect(used.length).toBeGreaterThan(40)
  expect(used.filter(({ isListed }) => !isListed)).toEqual([])
})
