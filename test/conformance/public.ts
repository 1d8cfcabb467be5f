/** Somebody else's conformance run, fetched when it is asked for and pointed at a page. */
import { spawn } from 'node:child_process'
import { openSite, serveIn } from '../support/site.ts'
import { openBridge } from './bridge.ts'

const PACKAGE = 'webai-at-home@0.1.8'
const RUN = ['webai-at-home', 'openai_test', 'conformance', '--profile', 'full']

/** Runs it and lets it print its report; resolves with its exit status. */
export async function runPublic(model: string, more: readonly string[]): Promise<number> {
  const site = await openSite()
  try {
    const page = await site.open()
    await serveIn(page)
    const bridge = await openBridge(page)
    try {
      const base = ['--base_url', `${bridge.url}/v1`, '--model', model]
      const fetched = ['exec', '--yes', '--ignore-scripts', `--package=${PACKAGE}`, '--']
      const shell = process.platform === 'win32'
      const child = spawn('npm', [...fetched, ...RUN, ...base, ...more], {
        stdio: 'inherit',
        shell,
      })
      return await new Promise((resolve, reject) => {
        child.on('error', reject)
        child.on('exit', (code) => resolve(code ?? 1))
      })
    } finally {
      await bridge.close()
    }
  } finally {
    await site.close()
  }
}
