/** Collects the programs of the kit with their shared libraries, from this Debian machine. */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { onPath } from '../../setup/programs.ts'

/** Where Debian's package has Chromium, and what of it a headless page needs. */
const CHROMIUM = '/usr/lib/chromium'
const CHROMIUM_FILES =
  /^(chromium-headless-shell|headless_.*\.pak|icudtl\.dat|.*snapshot.*\.bin|lib(EGL|GLESv2|vk_swiftshader)\.so|libvulkan\.so\.1|vk_swiftshader_icd\.json)$/

const LIBRARIES = '/usr/lib/x86_64-linux-gnu'

/** Libraries that NSS loads by name. */
const NSS_MODULES = ['softokn3', 'freebl3', 'freeblpriv3', 'nssckbi']

/** Parts of glibc, of which a process has only one: that of the machine. */
const GLIBC = /^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|mvec|anl|nss_\w+))\.so/

/**
 * Packages that NVIDIA's Vulkan driver needs beside itself, although no display is used: without the
 * libraries of GLVND and X11, it loads and finds no device.
 */
const PACKAGES = [
  'libvulkan1',
  'libglvnd0',
  'libegl1',
  'libopengl0',
  'libgl1',
  'libglx0',
  'libgles2',
  'libx11-6',
  'libxext6',
  'libxcb1',
  'libxau6',
  'libxdmcp6',
  'libbsd0',
  'libmd0',
]

/** Throws with what to install, if this machine cannot make a kit. */
export function checkMachine(): void {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('The kit is made on x86-64 Linux, whose programs it takes.')
  if (!existsSync(join(CHROMIUM, 'chromium-headless-shell')))
    throw new Error(
      `There is no ${CHROMIUM}/chromium-headless-shell. On Debian: apt-get install chromium-headless-shell`,
    )
  const missing = ['tar', 'gzip', 'ldd', 'apt-get', 'dpkg-deb'].filter(
    (command) => !onPath([command]).some((path) => existsSync(path)),
  )
  if (missing.length > 0)
    throw new Error(`The kit needs ${missing.join(', ')}, as Debian has them.`)
}

/** Copies Node.js, Chromium and their libraries into the folder. */
export function collectPrograms(folder: string): void {
  const [chromium, lib] = [join(folder, 'chromium'), join(folder, 'lib')]
  mkdirSync(chromium, { recursive: true })
  mkdirSync(lib, { recursive: true })
  const node = realpathSync(process.execPath)
  cpSync(node, join(folder, 'node'))
  for (const file of readdirSync(CHROMIUM).filter((name) => CHROMIUM_FILES.test(name)))
    cpSync(join(CHROMIUM, file), join(chromium, file), { dereference: true })
  const modules = NSS_MODULES.map((name) => join(LIBRARIES, `lib${name}.so`))
  const programs = [
    node,
    ...readdirSync(chromium).flatMap((name) =>
      /shell|\.so/.test(name) ? join(CHROMIUM, name) : [],
    ),
  ]
  addPackages(lib)
  for (const path of [...modules, ...librariesOf([...programs, ...modules])])
    if (!existsSync(join(lib, basename(path))))
      cpSync(path, join(lib, basename(path)), { dereference: true })
}

/** Returns the paths of the libraries that these files need, but for those of glibc. */
function librariesOf(files: readonly string[]): string[] {
  const lines = files.flatMap((file) =>
    execFileSync('ldd', [file], { encoding: 'utf8' }).split('\n'),
  )
  const lost = lines.find((line) => line.includes('not found'))
  if (lost) throw new Error(`A library of Chromium is missing: ${lost.trim()}`)
  const paths = lines.flatMap((line) => /=> (\/\S+)/.exec(line)?.[1] ?? [])
  return [...new Set(paths)].filter((path) => !GLIBC.test(basename(path)))
}

/** Downloads the packages, which need not be installed here, and adds their libraries. */
function addPackages(lib: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-kit-packages-'))
  try {
    try {
      const stdio = ['ignore', 'ignore', 'pipe'] as const
      execFileSync('apt-get', ['download', ...PACKAGES], { cwd: folder, stdio: [...stdio] })
    } catch (cause) {
      const what = 'The packages of the GL and Vulkan loaders could not be downloaded.'
      throw new Error(`${what} Run: apt-get update`, { cause })
    }
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb')))
      execFileSync('dpkg-deb', ['-x', join(folder, file), folder])
    const libraries = join(folder, LIBRARIES)
    // Links stay links, by which the loader finds a library under its short name.
    cpSync(libraries, lib, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => path === libraries || /\.so(\.|$)/.test(path),
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the version of glibc, which the machine that runs the kit must have at least. */
export function glibcVersion(): string {
  const header = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header
  return header.glibcVersionRuntime ?? 'unknown'
}
