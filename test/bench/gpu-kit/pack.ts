/**
 * `npm run bench -- --gpu-kit DIR` packs what a bare x86-64 Linux machine with an NVIDIA GPU, a shell and
 * no network needs to measure inorigin beside transformers.js, wllama and WebLLM.
 */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { SIDE_NAMES } from '../compare.ts'
import { type ShapeName, SHAPES } from '../models/shapes.ts'
import { buildApp } from './app.ts'
import { checkMachine, collectPrograms, glibcVersion } from './native.ts'
import { packFolder, partOf } from './pieces.ts'
import { writeReadme } from './readme.ts'

/** Largest piece of the archive in bytes. A folder has one piece and two small files. */
const PIECE_BYTES = 63 * 2 ** 20

export interface PackOptions {
  /** Folder that gets `part-1`, `part-2` and so on. It must be empty, or not there. */
  out: string
  /**
   * Folder with libraries that MLC compiled, named by shapes: `500M.wasm`, `1500M.wasm`. Default: the
   * kit does not measure WebLLM.
   */
  mlc?: string | undefined
}

/** Packs the kit. The playground must be built. */
export async function packGpuKit({ out, mlc }: PackOptions): Promise<void> {
  checkMachine()
  if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty.`)
  const libraries = mlc === undefined ? [] : findLibraries(mlc)
  const work = mkdtempSync(join(tmpdir(), 'inorigin-kit-'))
  try {
    const kit = join(work, 'kit')
    const sides = SIDE_NAMES.filter((side) => side !== 'webllm' || libraries.length > 0)
    console.log(`builds the sides: ${sides.join(', ')}`)
    await buildApp(join(kit, 'app'), sides)
    for (const { shape, path } of libraries) {
      const folder = join(kit, 'data/mlc', shape)
      mkdirSync(folder, { recursive: true })
      cpSync(path, join(folder, 'library.wasm'))
    }
    console.log('collects Node.js, Chromium and their libraries')
    collectPrograms(kit)
    copyFileSync(join(import.meta.dirname, 'run.sh'), join(kit, 'run.sh'))
    const readme = writeReadme({
      glibc: glibcVersion(),
      shapes: libraries.map((each) => each.shape),
    })
    writeFileSync(join(kit, 'README.md'), readme)
    console.log('packs them')
    const count = await packFolder(kit, out, PIECE_BYTES)
    for (let part = 1; part <= count; part += 1) {
      const folder = partOf(out, part)
      copyFileSync(join(import.meta.dirname, 'unpack.sh'), join(folder, 'unpack.sh'))
      writeFileSync(join(folder, 'README.md'), readme)
    }
    console.log(`${out} has ${count} folders. README.md in them says how to run the kit.`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Finds the libraries in the folder. Throws if a name is not that of a shape. */
function findLibraries(folder: string): { shape: ShapeName; path: string }[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.wasm'))
  if (files.length === 0) throw new Error(`${folder} has no .wasm file.`)
  return files.map((file) => {
    const shape = basename(file, '.wasm')
    if (!(shape in SHAPES)) {
      const names = Object.keys(SHAPES).join(', ')
      throw new Error(`${join(folder, file)} must be named by a shape: ${names}.`)
    }
    return { shape: shape as ShapeName, path: join(folder, file) }
  })
}
