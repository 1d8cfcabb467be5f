/** The command `inorigin types`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defineCommand } from '../command.ts'
import { printLines } from '../output.ts'
import { getPublicFolder } from '../project-options.ts'
import { generateTypes, writeTypes } from '../types.ts'
import { createUsageError } from '../usage.ts'

export const TYPES = defineCommand({
  name: 'types',
  operands: [
    {
      name: 'catalog',
      about: 'Path of the catalog (default: those in the public folder)',
      isRequired: false,
    },
  ],
  usage: '[-o file.d.ts]',
  about: [
    'Writes TypeScript types for the predictors of a catalog, so that the inputs and outputs of',
    "server.predict('@me/name', { ... }) are typed.",
  ],
  options: {
    out: {
      type: 'string',
      short: 'o',
      value: '<file>',
      about: 'File to write (default: print to the terminal)',
    },
    public: {
      type: 'string',
      value: '<folder>',
      about: "Your app's public folder (default: the one passed to init)",
    },
  },
  run({ out, public: folder }, [catalog]) {
    const catalogs = catalog === undefined ? findCatalogs(getPublicFolder(folder)) : [catalog]
    const types = generateTypes(catalogs)
    if (out === undefined) return printLines(...types.text.trimEnd().split('\n'))
    writeTypes(out, types)
    return printLines(`${out}: types of ${types.tags.join(', ') || 'no predictors'}.`)
  },
})

/** Returns the paths of the app's catalog and the package's one, if they exist. */
function findCatalogs(publicDir: string): string[] {
  const names = ['catalog.json', join('models', 'catalog.json')]
  const found = names
    .map((name) => join(publicDir, 'inorigin', name))
    .filter((path) => existsSync(path))
  if (found.length > 0) return found
  throw createUsageError(
    `There is no catalog in ${join(publicDir, 'inorigin')}. Name one: inorigin types catalog.json`,
  )
}
