/** Apps of the documentation whose files are blocks of a page. Tests build and use them. */
import { type CodeBlock, readFileName } from './blocks.ts'

export interface Recipe {
  /** Folder in `test/templates/apps` with the other files of the app. */
  name: string
  page: string
  /** Paths in the app that the blocks begin with. */
  files: readonly string[]
}

export const RECIPES = {
  vue: { name: 'vue', page: 'docs/frameworks.md', files: ['src/use-model.js', 'src/App.vue'] },
  svelte: {
    name: 'svelte',
    page: 'docs/frameworks.md',
    files: ['src/models.svelte.js', 'src/App.svelte'],
  },
  assistantUi: {
    name: 'assistant-ui',
    page: 'docs/frameworks.md',
    files: ['src/Assistant.jsx'],
  },
  next: {
    name: 'next',
    page: 'docs/nextjs.md',
    files: ['next.config.mjs', 'app/page.jsx'],
  },
  pwa: {
    name: 'pwa',
    page: 'docs/offline.md',
    files: ['vite.config.js', 'src/sw.js', 'src/serve.js'],
  },
  extension: {
    name: 'extension',
    page: 'docs/extension.md',
    files: ['manifest.json', 'ask/page.html', 'ask/page.js'],
  },
} satisfies Record<string, Recipe>

/** Returns `true` for a file of a recipe, which the tool of its framework compiles. */
export function isRecipe(block: CodeBlock): boolean {
  const file = readFileName(block) ?? ''
  return Object.values<Recipe>(RECIPES).some(
    ({ page, files }) => page === block.page && files.includes(file),
  )
}
