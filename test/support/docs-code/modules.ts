/** The code blocks of the documentation as modules of a folder, with the context of fragments. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CodeBlock, ROOT } from './blocks.ts'
import { isRecipe } from './recipes.ts'

const EXTENSIONS: Readonly<Record<string, string>> = {
  ts: 'ts',
  tsx: 'tsx',
  js: 'js',
  jsx: 'jsx',
}

/**
 * Names that fragments use and do not declare, with the modules that export them: those of `*` on
 * every page. A path is that of a file in `context/`.
 */
const CONTEXT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '*': { serve: 'inorigin', server: './server.ts', openai: './openai.ts' },
  'docs/bridge.md': {
    button: './bridge.ts',
    input: './bridge.ts',
    stop: './bridge.ts',
    showLent: './bridge.ts',
  },
  'docs/endpoints.md': { model: './response.ts', input: './response.ts' },
  'docs/images.md': { dataUrl: './picture.ts' },
  'docs/lifetime.md': { input: './fields.ts' },
  'docs/predictors.md': { canvas: './canvas.ts', chunks: './sound.ts' },
  'docs/prompt-api.md': {
    button: './prompt.ts',
    bar: './prompt.ts',
    output: './prompt.ts',
    LanguageModel: './prompt.ts',
    session: './prompt.ts',
  },
  'docs/storage.md': { input: './fields.ts' },
  'docs/tasks.md': { canvas: './canvas.ts', file: './sound.ts' },
  'docs/vite.md': { defineConfig: 'vite', inorigin: 'inorigin/vite' },
}

/** Modules that prepare the page of every block, such as with an element that the block looks up. */
const SETUPS: Readonly<Record<string, string>> = { 'docs/predictors.md': './canvas.ts' }

/** Returns `true` for a block that is compiled as a module, and not as a file of a recipe. */
export const isModule = (block: CodeBlock): boolean =>
  block.language in EXTENSIONS && !isRecipe(block)

export interface DocsModule {
  block: CodeBlock
  /** Path of the file in the folder. */
  file: string
}

export interface DocsFolder {
  path: string
  modules: DocsModule[]
  remove(): void
}

/** Writes each block as a module, on the lines of its page, into a folder that sees `node_modules`. */
export function writeModules(blocks: readonly CodeBlock[]): DocsFolder {
  const path = mkdtempSync(join(tmpdir(), 'inorigin-code-'))
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'), 'junction')
  mkdirSync(join(path, 'pages'))
  const modules = blocks.filter(isModule).map((block) => {
    const name = `${block.page.replace(/\.md$/, '').replaceAll('/', '~')}~${block.line}`
    const file = join(path, 'pages', `${name}.${EXTENSIONS[block.language]}`)
    writeFileSync(file, toModule(block))
    return { block, file }
  })
  return { path, modules, remove: () => rmSync(path, { recursive: true, force: true }) }
}

function toModule({ page, line, code }: CodeBlock): string {
  // A page without a bundler imports the copy of `inorigin init`, which has the same types.
  const source = code.replace(`'/inorigin/index.js'`, `'inorigin'`)
  const names = Object.entries({ ...CONTEXT['*'], ...CONTEXT[page] })
  const imports = names
    .filter(([name]) => isUsed(source, name) && !isDeclared(source, name))
    .map(([name, from]) => `import { ${name} } from '${toSpecifier(from)}'\n`)
  const setup = SETUPS[page]
  if (setup !== undefined) imports.push(`import '${toSpecifier(setup)}'\n`)
  // Imports are hoisted, so the lines of the block keep their numbers.
  return `${'\n'.repeat(line)}${source}\n${imports.join('')}export {}\n`
}

const toSpecifier = (from: string): string =>
  from.startsWith('./') ? join(import.meta.dirname, 'context', from) : from

const isUsed = (code: string, name: string): boolean => {
  const text = code.replaceAll(/\/\/.*$|'[^'\n]*'/gm, '')
  return new RegExp(String.raw`(?<![\w.])${name}\b(?!\s*[:=]\s)`).test(text)
}

const isDeclared = (code: string, name: string): boolean =>
  new RegExp(
    String.raw`(?:const|let|function|class)\s+${name}\b|(?:const|import)\s*\{[^}]*\b${name}\b`,
  ).test(code)
