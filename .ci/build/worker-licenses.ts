/** Vite plugin for the workers of the playground, whose bundles Vite does not list with the page's. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plugin } from 'vite'
import { licensesMarkdown, type Licensed } from './licenses.ts'

/** Writes the licenses of the packages in a bundle to a file beside it. */
export function emitWorkerLicenses(fileName: string): Plugin {
  return {
    name: 'inorigin:worker-licenses',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((file) =>
        file.type === 'chunk' ? file.moduleIds : [],
      )
      const folders = new Set(modules.flatMap((id) => findPackage(id) ?? []))
      const packages = [...folders].toSorted().map(readPackage)
      this.emitFile({ type: 'asset', fileName, source: licensesMarkdown(packages) })
    },
  }
}

/** Returns the folder of the package that a module is part of; `undefined` for our own modules. */
function findPackage(module: string): string | undefined {
  if (!module.includes('/node_modules/')) return undefined
  const path = module.replace(/^\0/, '').split('?', 1)[0] ?? ''
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    // Folders inside a package may have such a file without a name.
    if (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).name) return folder
  }
  return undefined
}

function readPackage(folder: string): Licensed {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(?:\.\w+)?$/i.test(entry))
  const text = file === undefined ? undefined : readFileSync(join(folder, file), 'utf8')
  return { name, version, identifier: license, text }
}
