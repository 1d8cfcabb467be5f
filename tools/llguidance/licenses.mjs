/** Prints the licenses of all that the WASM module contains. `build.sh` runs it. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const TARGET = 'wasm32-unknown-unknown'
const FOLDER = import.meta.dirname

const options = ['--locked', '--format-version', '1', '--filter-platform', TARGET]
const metadata = JSON.parse(
  execFileSync('cargo', ['metadata', ...options], { cwd: FOLDER, maxBuffer: 2 ** 28 }),
)
const packages = new Map(metadata.packages.map((each) => [each.id, each]))
const nodes = new Map(metadata.resolve.nodes.map((each) => [each.id, each]))

/** Crates that are linked: macros run while others are compiled. */
const linked = new Set([metadata.resolve.root])
for (const id of linked) {
  for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
    const isMacro = packages.get(pkg).targets.some(({ kind }) => kind.includes('proc-macro'))
    if (!isMacro && kinds.some(({ kind }) => kind === null)) linked.add(pkg)
  }
}
linked.delete(metadata.resolve.root)

const mit = readFileSync(join(FOLDER, '../../.ci/build/licenses/MIT.txt'), 'utf8').trim()

/** The standard library and what it links, which `cargo metadata` does not list. */
const STANDARD = [
  ['Rust standard library', 'MIT OR Apache-2.0', 'Copyright (c) The Rust Project Contributors'],
  ['dlmalloc', 'MIT OR Apache-2.0', 'Copyright (c) 2014 Alex Crichton'],
  ['rustc-demangle', 'MIT OR Apache-2.0', 'Copyright (c) 2014 Alex Crichton'],
].map(([name, license, copyright]) => ({ name, license, text: `${copyright}\n\n${mit}` }))

/** Returns the text under which we pass the crate on: MIT if there is a choice. */
function readText({ name, manifest_path: manifest }) {
  const folder = dirname(manifest)
  const files = readdirSync(folder)
  const file = ['LICENSE-MIT', 'LICENSE'].find((each) => files.includes(each))
  if (!file) throw new Error(`${name} has no license file.`)
  return readFileSync(join(folder, file), 'utf8').trim()
}

const crates = [...linked]
  .map((id) => packages.get(id))
  .map((each) => ({
    name: `${each.name} ${each.version}`,
    license: each.license,
    text: readText(each),
  }))
const byText = new Map()
for (const each of [...crates, ...STANDARD]) {
  byText.set(each.text, [...(byText.get(each.text) ?? []), each])
}
const sections = Array.from(byText, ([text, same]) => {
  const names = same.map(({ name, license }) => `### ${name} (${license})`)
  return `${names.toSorted().join('\n')}\n\n${text.replaceAll('\r\n', '\n')}\n`
})
process.stdout.write(sections.toSorted().join('\n'))
