/** Which web platform tests of a folder can run here, and why the others cannot. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Folder of the tests in a checkout. */
export const TESTS = 'ai/language-model'

/** One file of tests. */
export interface Planned {
  /** Path below {@link TESTS}. */
  name: string
  /** Scripts of its `META` lines, as URL paths. */
  scripts: readonly string[]
  /** `true` if it uses the names that the specification limits to extensions. */
  isLegacy: boolean
  /** Why it does not run; absent if it does. */
  skipped?: string
  /** Names of its tests that need the echo model of Chromium, and whose results do not count. */
  echoTests: readonly string[]
}

/** What needs a browser's own implementation, by a part of the file's name or of its text. */
const INTERNALS: readonly (readonly [RegExp, string])[] = [
  [/detached-iframe|context-destroyed|context\/destroyed/, 'calls the interface of another frame'],
  [/-iframe\.tentative|permissions/, 'tests the permissions policy of frames'],
]

const INTERNAL_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/^\s*gc\(\)/m, 'collects garbage, which only browsers for tests let a page do'],
]

/** Tests of a script: the code, and the name if there is one. */
const TEST = /^promise_test\(([\s\S]*?)^\}(?:,\s*(['"`])(.*?)\2)?\s*\);/gm

/** Found in tests whose model has to repeat the prompt, or to call a tool at a sign. */
const ECHO = /EchoAILanguageModel|echo model|should echo back|TOOL_CALL_TRIGGER/i

/** Names that only `legacy` has, in tests of earlier versions of the specification. */
const LEGACY_NAMES =
  /inputUsage|inputQuota|measureInputUsage|quotaoverflow|params\(|topK|temperature/

/**
 * Returns the tests of a checkout, those that do not run with a reason.
 *
 * @throws Error if the folder has no such tests.
 */
export function planTests(folder: string): Planned[] {
  const root = join(folder, TESTS)
  if (!existsSync(root) || !statSync(root).isDirectory()) {
    const what = `${folder} has no folder ${TESTS}.`
    throw new Error(`${what} Fetch the web platform tests, and pass their folder as --dir.`)
  }
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(window|any)\.js$|\.html$/.test(name) && !name.includes('resources/'))
    .toSorted()
  if (files.length === 0) throw new Error(`${root} has no tests.`)
  return files.map((name) => plan(root, name))
}

function plan(root: string, name: string): Planned {
  const text = readFileSync(join(root, name), 'utf8')
  const scripts = [...text.matchAll(/^\/\/ META: script=(\S+)$/gm)].map(([, path = '']) => path)
  const tests = Array.from(text.matchAll(TEST), ([, code = '', , test = '']) => ({ code, test }))
  const echoTests = tests.filter(({ code }) => ECHO.test(code)).map(({ test }) => test)
  const skipped =
    (name.endsWith('.html') ? 'is a page of its own, for frames' : undefined) ??
    INTERNALS.find(([form]) => form.test(name))?.[1] ??
    INTERNAL_TEXTS.find(([form]) => form.test(text))?.[1]
  return {
    name,
    scripts,
    isLegacy: LEGACY_NAMES.test(text),
    ...(skipped !== undefined && { skipped }),
    echoTests,
  }
}

/** Returns the page that runs a test, as the server of the web platform tests writes it. */
export function pageOf(
  { name, scripts, isLegacy: legacy }: Planned,
  folder: string,
  bootstrap: string,
): string {
  const own = `/${TESTS}/${name}`
  const base = new URL(own, 'http://localhost')
  const urls = scripts.map((path) => new URL(path, base).pathname)
  // The driver of a browser is not here. Its one function that these tests use is ours.
  const wanted = urls.filter((path) => !path.startsWith('/resources/testdriver'))
  for (const path of wanted) {
    if (existsSync(join(folder, path))) continue
    throw new Error(`${relative('.', join(folder, path))} is missing, which ${name} needs.`)
  }
  return `<!doctype html><meta charset="utf-8"><title>${name}</title>
<script src="/resources/testharness.js"></script>
<script>${bootstrap}</script>
<script type="module">
  import { serve } from '/inorigin/index.js'
  import { installLanguageModel } from '/package/language-model.js'
  const server = () => serve({ worker: '/sw.js' })
  installLanguageModel({ server, model: '@inorigin/guide', force: true, legacy: ${legacy} })
  for (const src of ${JSON.stringify([...wanted, own])}) {
    const script = document.createElement('script')
    Object.assign(script, { src, async: false })
    document.head.append(script)
  }
</script>`
}
