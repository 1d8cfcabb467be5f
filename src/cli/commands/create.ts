/** The command `inorigin create`. */
import { join, resolve } from 'node:path'
import { defineCommand, suggest } from '../command.ts'
import { create, type Template, TEMPLATES } from '../create.ts'
import { printLines } from '../output.ts'
import { DIST, readVersion } from '../package-files.ts'
import { createUsageError } from '../usage.ts'

const NAMES = Object.keys(TEMPLATES) as Template[]

export const CREATE = defineCommand({
  name: 'create',
  operands: [{ name: 'folder', about: 'Folder of the new app', isRequired: true }],
  usage: '[--template <name>]',
  about: [
    'Makes a new app that chats with a model in the browser, shows how the model loads, and opens',
    'without a network after the first visit. It runs on any static host. Templates:',
    ...NAMES.map((name) => `  ${name.padEnd(8)} ${TEMPLATES[name]}`),
  ],
  options: {
    template: {
      type: 'string',
      short: 't',
      value: '<name>',
      about: `${NAMES.join(', ')} (default: ${NAMES[0]})`,
    },
  },
  run({ template = 'vanilla' }, [folder = '']) {
    const found = NAMES.find((name) => name === template)
    if (found === undefined) {
      const hint = suggest(template, NAMES)
      throw createUsageError(`--template takes ${NAMES.join(', ')}, not ${template}.${hint}`)
    }
    const templates = join(DIST, '..', 'templates')
    const files = create({ folder, template: found, templates, version: readVersion() })
    const isHere = resolve(folder) === process.cwd()
    const steps = [...(isHere ? [] : [`cd ${folder}`]), 'npm install', 'npm run dev']
    return printLines(
      `Created ${folder} from the template ${found}: ${files.length} files. Start it:`,
      '',
      ...steps.map((line) => `  ${line}`),
    )
  },
})
