/** Builds the part of the kit that Node.js and a browser run: the driver, the sides and their runtimes. */
import { cpSync, mkdirSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { createRequire } from 'node:module'
import { build } from 'vite'
import { buildSides, PEER_PACKAGES } from '../compare.ts'
import type { SideName } from '../side.ts'

const ROOT = join(import.meta.dirname, '../../..')
const PLAYGROUND = join(ROOT, 'dist-demo')
/** A model of 98 MB that no side runs. */
const LEFT_OUT = join('inorigin', 'models', 'smollm2-135m')

/** Builds of ONNX Runtime among which transformers.js chooses. */
const ORT_FILES = ['', '.asyncify', '.jspi'].flatMap((kind) =>
  ['mjs', 'wasm'].map((type) => `ort-wasm-simd-threaded${kind}.${type}`),
)

/** Builds the folder with these sides. The playground must be built. */
export async function buildApp(folder: string, sides: readonly SideName[]): Promise<void> {
  await buildScriptsOfNode(folder)
  const playwright = dirname(createRequire(import.meta.url).resolve('playwright-core/package.json'))
  cpSync(playwright, join(folder, 'node_modules/playwright-core'), { recursive: true })
  await buildSides(join(folder, 'sides'), sides)
  if (sides.includes('transformers')) copyOrt(join(folder, 'ort'))
  if (sides.includes('wllama'))
    cpSync(join(PEER_PACKAGES, '@wllama/wllama/esm/wasm'), join(folder, 'wllama'), {
      recursive: true,
    })
  cpSync(PLAYGROUND, join(folder, 'playground'), {
    recursive: true,
    filter: (path) => relative(PLAYGROUND, path) !== LEFT_OUT,
  })
}

function copyOrt(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const file of ORT_FILES)
    cpSync(join(PEER_PACKAGES, 'onnxruntime-web/dist', file), join(folder, basename(file)))
}

/** Builds `driver.mjs` and `write-model.mjs`, which need no package but playwright-core. */
async function buildScriptsOfNode(outDir: string): Promise<void> {
  await build({
    configFile: false,
    logLevel: 'error',
    root: ROOT,
    resolve: { alias: { playwright: 'playwright-core' } },
    ssr: { noExternal: true, external: ['playwright-core'] },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: true,
      rollupOptions: {
        input: {
          driver: join(import.meta.dirname, 'driver.ts'),
          'write-model': join(import.meta.dirname, 'write-model.ts'),
        },
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' },
      },
    },
  })
}
