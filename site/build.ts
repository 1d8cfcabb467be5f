/**
 * Builds the documentation as a site: the pages of the repository, and a reference that is made of the
 * doc comments. An exported name without a doc comment fails the build, and so does a dead link.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { writeDocs } from '../.ci/build/docs.ts'
import packageJson from '../package.json' with { type: 'json' }

const SITE = join(process.cwd(), 'site')
const ROOT = dirname(SITE)

/** Markdown pages, as they lie in the repository, so that their links need no change. */
const PAGES = join(SITE, '.pages')
const BUILT = join(SITE, '.vitepress/dist')

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: '/site/' },
    out: { type: 'string', default: join(ROOT, 'dist-demo/site') },
  },
})

if (!/^\/(?:.*\/)?$/.test(values.base)) {
  throw new Error(`--base must begin and end with a slash, such as /site/, not ${values.base}.`)
}

const out = resolve(values.out)
// The build of the playground leaves its own pages there.
const isOurs = ['llms.txt', 'search.json'].some((name) => existsSync(join(out, name)))
if (existsSync(out) && readdirSync(out).length > 0 && !isOurs) {
  throw new Error(`${out} is no site of an earlier build. Name another folder, or delete it.`)
}

function run(script: string, ...args: string[]): void {
  execFileSync(process.execPath, [join(SITE, 'node_modules', script), ...args], {
    cwd: SITE,
    env: { ...process.env, SITE_BASE: values.base },
    stdio: 'inherit',
  })
}

rmSync(PAGES, { recursive: true, force: true })
mkdirSync(PAGES)
writeDocs(ROOT, PAGES, packageJson)
run('typedoc/bin/typedoc')
run('vitepress/bin/vitepress.js', 'build')
rmSync(out, { recursive: true, force: true })
cpSync(BUILT, out, { recursive: true })
cpSync(PAGES, out, { recursive: true })
process.stdout.write(`The site is in ${out}. It works at ${values.base} of a host.\n`)
