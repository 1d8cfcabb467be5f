/** The command `inorigin create`. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import * as v from 'valibot'
import { tagSchema } from '../../catalog/value-schemas.ts'
import { refuse } from '../../draft/refuse.ts'
import { defineCommand, suggest, valued, wrongValueError } from '../command.ts'
import { printLines } from '../output.ts'
import { DIST, readVersion } from '../library-files.ts'
import { writeBelow } from '../write-file.ts'

/** Templates of the package, by name. The text says what they are, for the help. */
const TEMPLATES = {
  vanilla: 'Vite and plain JavaScript',
  react: 'Vite and React',
  static: 'a folder of files, without a bundler',
} as const

type Template = keyof typeof TEMPLATES

/**
 * Files that npm does not pack under their own name.
 * https://docs.npmjs.com/cli/using-npm/developers#keeping-files-out-of-your-package
 */
const RENAMED: Readonly<Record<string, string>> = { _gitignore: '.gitignore' }

const PACKAGE = join(DIST, '..')

/** Where the dependency of a new app comes from. */
interface Source {
  /** Version or path of the dependency in `package.json`. */
  spec: string
  /** Packed package to copy into the app, so that it installs anywhere; `null` for none. */
  tarball: string | null
  /** Lines that say so; none for a version of the npm registry. */
  words: readonly string[]
}

/** Returns the source of the package that runs this command: npm, a packed file or a checkout. */
function findSource(folder: string): Source {
  const isInstalled = basename(dirname(PACKAGE)) === 'node_modules'
  if (!isInstalled) {
    const spec = `file:${relative(folder, PACKAGE).split(sep).join('/')}`
    const words = [`It uses inorigin from ${PACKAGE}. Keep that folder, and its build.`]
    return { spec, tarball: null, words }
  }
  const tarball = findTarball(join(PACKAGE, '../..'))
  if (tarball === null) return { spec: `^${readVersion()}`, tarball, words: [] }
  const name = basename(tarball)
  const words = [
    `It uses ${name}, which was copied into its folder. Keep that file beside package.json.`,
  ]
  return { spec: `file:${name}`, tarball, words }
}

/** Returns the path of the packed file that a project installed this package from; `null` for none. */
function findTarball(project: string): string | null {
  const path = join(project, 'package.json')
  if (!existsSync(path)) return null
  const { dependencies } = JSON.parse(readFileSync(path, 'utf8'))
  const [, file] = /^file:(.*\.t(?:ar\.)?gz)$/.exec(dependencies?.inorigin ?? '') ?? []
  const tarball = file === undefined ? null : resolve(project, file)
  return tarball !== null && existsSync(tarball) ? tarball : null
}

/**
 * Writes the app and returns the names of its files. Throws `invalid_request` if the folder has
 * files already, or if its name cannot be the name of a package.
 */
function create(folder: string, template: Template, model: string, source: Source): string[] {
  const name = basename(resolve(folder))
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(name)) {
    const what = `${name} cannot be the name of a package.`
    throw refuse(what, 'Use lower-case letters, digits, dots, hyphens and underscores.')
  }
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory()
  if (isFolder === false) throw refuse(`${folder} is a file.`, 'Name a new folder.')
  if (isFolder && readdirSync(folder).some((file) => file !== '.git'))
    throw refuse(`${folder} has files already.`, 'Name a new folder.')
  const from = join(PACKAGE, 'templates', template)
  const files = readdirSync(from, { recursive: true, encoding: 'utf8' })
    .filter((file) => statSync(join(from, file)).isFile())
    .map((file) => file.split(sep).join('/'))
  if (source.tarball !== null)
    writeBelow(folder, basename(source.tarball), { from: source.tarball })
  return files.map((file) => {
    const to = join(dirname(file), RENAMED[basename(file)] ?? basename(file))
    const text = readFileSync(join(from, file), 'utf8')
      .replaceAll('__NAME__', name)
      .replaceAll('__VERSION__', source.spec)
      .replaceAll('__MODEL__', model)
    writeBelow(folder, to, { text })
    return to
  })
}

const DEFAULT_MODEL = '@inorigin/guide'

/** Returns the tag. Throws `invalid_request` if it is none. */
function parseModel(tag: string): string {
  const { issues, success } = v.safeParse(tagSchema, tag)
  if (success) return tag
  throw wrongValueError(
    '--model',
    'a tag such as @huggingfacetb/smollm2-135m',
    `${tag}. ${issues[0].message}`,
  )
}

/** Returns a path as a shell takes it. */
const quote = (path: string): string => (/^[\w./@\\:-]+$/.test(path) ? path : `"${path}"`)

const NAMES = Object.keys(TEMPLATES) as Template[]

export const CREATE = defineCommand({
  name: 'create',
  operands: [{ name: 'folder', about: 'Folder of the new app', isRequired: true }],
  usage: '[--template <name>] [--model <tag>]',
  about: [
    'Makes a new app that chats with a model in the browser, shows how the model loads, and opens',
    'without a network after the first visit. It runs on any static host. Templates:',
    ...NAMES.map((name) => `  ${name.padEnd(8)} ${TEMPLATES[name]}`),
  ],
  options: {
    template: valued('<name>', `${NAMES.join(', ')} (default: ${NAMES[0]})`, 't'),
    model: valued('<tag>', `Model that answers (default: ${DEFAULT_MODEL})`),
  },
  run({ template = 'vanilla', model = DEFAULT_MODEL }, [folder = '']) {
    const found = NAMES.find((name) => name === template)
    if (found === undefined)
      throw wrongValueError(
        '--template',
        NAMES.join(', '),
        `${template}.${suggest(template, NAMES)}`,
      )
    const source = findSource(folder)
    const files = create(folder, found, parseModel(model), source)
    const isHere = resolve(folder) === process.cwd()
    const steps = [...(isHere ? [] : [`cd ${quote(folder)}`]), 'npm install', 'npm run dev']
    return printLines(
      `Created ${folder} from the template ${found}: ${files.length} files.`,
      ...source.words,
      'Start it:',
      '',
      ...steps.map((line) => `  ${line}`),
    )
  },
})
