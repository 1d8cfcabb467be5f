/** The documentation: its links, its list of pages, and the facts in it that the code knows. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toLlmsText, writeDocs } from '../../.ci/build/docs.ts'
import { writeSite } from '../../.ci/build/site.ts'
import { writeSource } from '../../.ci/build/source.ts'
import hub from '../../demo/models/hub.json' with { type: 'json' }
import packageJson from '../../package.json' with { type: 'json' }

const ROOT = join(import.meta.dirname, '../..')

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8')
const listPages = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))

const inDocs = (site: string) =>
  ['docs', 'docs/decisions'].flatMap((at) => listPages(join(site, at)))

/** Returns the targets of the links of a page that are not on another site. */
function listLinks(page: string): string[] {
  const text = read(page)
    .replace(/```.*?```/gs, '')
    .replace(/`[^`\n]*`(?!\])/g, '')
  const targets = Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = '']) => target)
  return targets.filter((target) => !URL.canParse(target))
}

/** Returns the anchors of a page as GitHub makes them of its headings. */
function listAnchors(page: string): string[] {
  const headings =
    read(page)
      .replace(/```.*?```/gs, '')
      .match(/^#+ .*$/gm) ?? []
  return headings.map((heading) =>
    heading
      .replace(/^#+ /, '')
      .toLowerCase()
      .replace(/[^\p{Letter}\p{Number}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function isBroken(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : resolve(dirname(page), path)
  const found = statSync(file, { throwIfNoEntry: false })
  return !found || (anchor !== undefined && !listAnchors(file).includes(anchor))
}

const findBroken = (pages: readonly string[]): string[] =>
  pages.flatMap((page) =>
    listLinks(page)
      .filter((target) => isBroken(page, target))
      .map((target) => `${relative(ROOT, page)}: ${target}`),
  )

test('all links lead to a file, and to a heading in it', () => {
  const pages = [...listPages(ROOT), ...inDocs(ROOT)]
  expect(pages.flatMap(listLinks).length).toBeGreaterThan(100)
  expect(findBroken(pages)).toEqual([])
})

test('the list of pages has each page once', () => {
  const listed = listLinks(join(ROOT, 'docs/README.md')).filter((target) => !target.includes('/'))
  const pages = listPages(join(ROOT, 'docs')).map((page) => relative(join(ROOT, 'docs'), page))
  expect(listed.toSorted()).toEqual(pages.filter((page) => page !== 'README.md').toSorted())
})

test('the table of models is that of the catalog', () => {
  const rows = read(ROOT, 'docs/choosing-a-model.md').matchAll(
    /^\| `(@.*?)` \| ([\d,]+) \| [^|]+ \| (.+?) \| (.+?) \|$/gm,
  )
  const written = Array.from(rows, ([, tag, context, license, languages]) =>
    [tag, context?.replace(',', ''), license, languages].join(' '),
  )
  const unknown = 'not known'
  expect(written).toEqual(
    hub.entries.map(({ tag, maxInputTokens, license = unknown, languages = [unknown] }) =>
      [tag, maxInputTokens, license, languages.join(', ')].join(' '),
    ),
  )
})

test.each([
  ['the folder of the library', /(?:`inorigin\/`[^.]*? has|It writes about) (\d+ MB)/g],
  ['that folder without the guide', /(?<=has \d+ MB, |makes it )(\d+ MB)/g],
  ['the guide', /@inorigin\/guide` comes[^.]*?([\d.]+ MB)|the guide's ([\d.]+ MB)/g],
  ['SmolLM2', /\((\d+ MB), (?:Apache|Q4_1)|file (\d+ MB), in memory/g],
  ['the runtime for WASM', /(?:one wasm file|one runtime) of (\d+ MB)/g],
  ['the runtimes', /[Rr]untimes? (?:\(|is downloaded once: )(\d+ to \d+ MB)/g],
  [
    'the largest file of a host',
    /(?:at most|more than|allows) (\d+ MiB)(?=\. (?:A page|No)|\.$|, which)/gm,
  ],
])('all documents state one size of %s', (_what, pattern) => {
  const pages = [...listPages(ROOT), ...listPages(join(ROOT, 'docs'))]
  const places = [...pages, join(ROOT, 'demo/preparation.ts')].flatMap((page) =>
    Array.from(read(page).matchAll(pattern), ([, one, other]) => [page, one ?? other] as const),
  )
  expect(new Set(places.map(([page]) => page)).size).toBeGreaterThan(1)
  expect([...new Set(places.map(([, value]) => value))]).toHaveLength(1)
})

test.each([
  ['Body', 'wire/body.ts', 'MAX_BODY_BYTES', 2 ** 20],
  ['JSON values in a body', 'values/json.ts', 'MAX_VALUES', 1],
  ['Objects, arrays and members of objects in a body', 'values/json.ts', 'MAX_NODES', 1],
  ['Nested objects and arrays', 'values/json.ts', 'MAX_DEPTH', 1],
  ['Items in the input of a response', 'wire/responses.ts', 'MAX_INPUT_ITEMS', 1],
  ['Stop sequences', 'wire/fields.ts', 'MAX_STOP_SEQUENCES', 1],
  ['Alternatives of each token', 'wire/shared-fields.ts', 'MAX_TOP_LOGPROBS', 1],
  ['Texts in a request for embeddings', 'wire/embeddings.ts', 'MAX_TEXTS', 1],
  ['Steps to rewrite a JSON schema', 'constraint/schema/rewrite.ts', 'MAX_STEPS', 1],
  ['Grammar', 'constraint/grammars.ts', 'MAX_GRAMMAR_CHARACTERS', 1],
  ['Images in a request', 'generation/images.ts', 'MAX_IMAGES', 1],
  ['Pixels of an image', 'generation/images.ts', 'MAX_IMAGE_PIXELS', 1],
  ['Side of an image', 'generation/images.ts', 'MAX_IMAGE_SIDE_PIXELS', 1],
  ['Images by URL', 'host/requests/image-fetcher.ts', 'MAX_FETCHED_BYTES', 2 ** 20],
  ['Sound of one prediction', 'predictor/audio.ts', 'MAX_SAMPLES', 1],
  ['Models in memory', 'host/models/models.ts', 'MAX_LOADED', 1],
  ['Times that a request continues', 'link/ask.ts', 'MAX_FAILOVERS', 1],
])('the page of limits states the limit of %s', (row, file, name, unit) => {
  const [, stated = ''] =
    new RegExp(`^\\| ${row}[^|]*\\| ([\\d,]+)`, 'm').exec(read(ROOT, 'docs/limits.md')) ?? []
  const [, value = ''] =
    new RegExp(`const ${name} = ([\\d_ *]+)`).exec(read(ROOT, 'src', file)) ?? []
  const [base = NaN, ...factors] = value
    .replaceAll('_', '')
    .split(/(?<!\*) \* (?!\*)/)
    .map(power)
  const limit = factors.reduce((product, factor) => product * factor, base)
  expect(Number(stated.replaceAll(',', ''))).toBe(limit / unit)
})

describe.each(['ARCHITECTURE.md', 'docs/internals.md'])('%s', (page) => {
  const text = read(ROOT, page).replace(/```.*?```/gs, '')
  const find = (path: string): string | undefined =>
    [path, `src/${path}`].find((each) => statSync(join(ROOT, each), { throwIfNoEntry: false }))

  test('names folders and files that exist', () => {
    const paths = Array.from(
      text.matchAll(/`(\.?[\w-]+\/[\w./-]*|[\w-]+\.ts)`/g),
      ([, path = '']) => path,
    )
    expect(paths.length).toBeGreaterThan(5)
    expect(paths.filter((path) => !find(path))).toEqual([])
  })

  test('names what the files contain', () => {
    const wrong = Array.from(text.matchAll(/`([\w./-]+\.ts)` \(([^)]*)\)/g)).flatMap(
      ([, path = '', names = '']) => {
        const source = read(ROOT, find(path) ?? path)
        return Array.from(names.matchAll(/`(\w+)`/g), ([, name = '']) => name)
          .filter((name) => !new RegExp(`\\b${name}\\b`).test(source))
          .map((name) => `${path}: ${name}`)
      },
    )
    expect(wrong).toEqual([])
  })
})

/** Parses `a` or `a ** b`. */
function power(text: string): number {
  const [base, exponent = 1] = text.split('**').map(Number)
  return (base ?? NaN) ** exponent
}

test('the tests that the page of the playground names exist', () => {
  const page = read(ROOT, 'docs/playground.md')
  const named = Array.from(page.matchAll(/`([\w-]+\.test\.ts)`, "(.*?)"(?=;| \|)/g))
  const rows = page.match(/^\|.*\.test\.ts`.*\|$/gm) ?? []
  expect(named.length).toBeGreaterThanOrEqual(rows.length)
  const missing = named.filter(
    ([, file = '', title = '']) => !read(ROOT, 'test/e2e', file).includes(title),
  )
  expect(missing.map(([text]) => text)).toEqual([])
})

describe('a site', () => {
  const site = mkdtempSync(join(tmpdir(), 'inorigin-docs-'))

  beforeAll(() => writeDocs(ROOT, site, packageJson))
  afterAll(() => rmSync(site, { recursive: true }))

  test('has an llms.txt that leads to its pages, whose links work there', () => {
    expect(read(site, 'llms.txt')).toMatch(
      /^# inorigin\n\n> Makes a web page's own origin .*\n\n## /,
    )
    const listed = listLinks(join(site, 'llms.txt'))
    expect(listed).toContain('docs/start.md')
    expect(findBroken([join(site, 'llms.txt'), ...inDocs(site)])).toEqual([])
  })

  test('has pages with navigation, headings and a search at site/, whose links work', () => {
    const folder = join(site, 'site')
    writeSite(ROOT, folder, packageJson)
    const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.html'),
    )
    expect(pages.length).toBeGreaterThan(40)
    const hasTarget = (page: string, target: string): boolean => {
      const [path = '', anchor = ''] = target.split('#')
      const file = path === '' ? join(folder, page) : resolve(folder, dirname(page), path)
      const isThere = existsSync(file)
      return isThere && (anchor === '' || read(file).includes(`id="${decodeURIComponent(anchor)}"`))
    }
    const dead = pages.flatMap((page) =>
      Array.from(read(folder, page).matchAll(/href="([^":]*)"/g), ([, target = '']) => target)
        .filter((target) => /\.html|^#|\.css/.test(target) && !hasTarget(page, target))
        .map((target) => `${page}: ${target}`),
    )
    expect(dead).toEqual([])
    const start = read(folder, 'docs/start.html')
    expect(start).toContain('<a href="../docs/start.html" aria-current="page">Start</a>')
    expect(start).toContain('<h2 id="before-the-first-release">')
    const sought = JSON.parse(read(folder, 'search.json')) as { href: string; title: string }[]
    expect(sought.filter(({ href }) => !hasTarget('index.html', href))).toEqual([])
    expect(sought.map(({ title }) => title)).toContain('Start: Before the first release')
  })

  test('has the modules of the playground as text at source/', () => {
    writeSource(ROOT, site)
    const page = read(site, 'source/index.html')
    expect(page).toContain('<summary>demo/markdown/build.ts</summary>')
    expect(page).toContain("const { serve } = await import('../src/index.ts')")
    expect(page.match(/<(?:script|link|img|iframe)\b/g)).toBeNull()
  })
})

test('llms.txt of the package leads to its documentation', () => {
  const text = toLlmsText(read(ROOT, 'docs/README.md'), packageJson, '../docs')
  const targets = Array.from(text.matchAll(/\]\((.*?)\)/g), ([, target = '']) => target)
  expect(targets.filter((target) => isBroken(join(ROOT, 'dist/llms.txt'), target))).toEqual([])
})
