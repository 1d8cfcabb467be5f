/** `licenses.md`: the licenses of all that the package bundles and `inorigin init` copies. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PARTS, type Spdx, TERMS } from './licenses/parts.ts'

/** A package as Vite lists it in `build.license`. */
export interface Licensed {
  name: string
  version: string
  /** SPDX identifier of its license. */
  identifier?: string
  /** Its license file. */
  text?: string
}

const TEXTS = join(import.meta.dirname, 'licenses')

const INTRODUCTION = `# Licenses

The scripts, wasm files and models of inorigin contain the following works. Notices on the training data of a
model are in a file NOTICE.md beside the model.
`

/**
 * Merges the lists that the bundles left in `licenses/` of the package into one file, `licenses.md`. Throws
 * where a bundled package has no license text.
 */
export function writeLicenses(dist: string, own: Licensed): void {
  const lists = join(dist, 'licenses')
  const bundled = readdirSync(lists).flatMap(
    (name) => JSON.parse(readFileSync(join(lists, name), 'utf8')) as Licensed[],
  )
  const byName = new Map(bundled.map((one) => [`${one.name} ${one.version}`, one]))
  const packages = [...byName.keys()].toSorted().flatMap((key) => byName.get(key) ?? [])
  writeFileSync(join(dist, 'licenses.md'), licensesMarkdown([own, ...packages]))
  rmSync(lists, { recursive: true })
}

/** Returns a section for each package, then the texts that their parts refer to. */
export function licensesMarkdown(packages: readonly Licensed[]): string {
  const sections = packages.map((one) => {
    const parts = partsOf(one.name)
    const text = [textOf(one), ...(parts.length > 0 ? ['It contains:', ...parts] : [])].join('\n\n')
    return `## ${one.name} - ${one.version} (${one.identifier ?? 'unknown'})\n\n${text}\n`
  })
  const used = new Set(
    packages.flatMap(({ name }) => (PARTS[name] ?? []).map(({ license }) => license)),
  )
  const texts = [...used].toSorted().map((license) => `## ${license}\n\n${standardText(license)}\n`)
  return [INTRODUCTION, ...sections, ...texts].join('\n')
}

function textOf({ name, version, identifier, text }: Licensed): string {
  if (text?.trim()) return text.trim()
  const terms = TERMS[name]
  if (!terms) {
    throw new Error(
      `${name} ${version} has no license text. Add its terms to .ci/build/licenses/parts.ts.`,
    )
  }
  if (terms.license !== identifier) {
    throw new Error(
      `${name} ${version} is under ${identifier}, and parts.ts says ${terms.license}. Correct it.`,
    )
  }
  return `${terms.copyright}\n\n${standardText(terms.license)}`
}

function partsOf(name: string): string[] {
  return (PARTS[name] ?? []).map(
    (part) => `### ${part.name} (${part.license})\n\n${part.copyright}\n\n${part.url}`,
  )
}

function standardText(license: Spdx): string {
  return readFileSync(join(TEXTS, `${license}.txt`), 'utf8').trimEnd()
}
