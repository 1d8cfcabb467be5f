/** Somebody else's conformance run, fetched when it is asked for and pointed at a page. */
import { spawn } from 'node:child_process'
import { lend, startBridge } from '../support/bridge-command.ts'
import { openSite, serveIn } from '../support/site.ts'

const PACKAGE = 'webai-at-home@0.1.8'
const RUN = ['webai-at-home', 'openai_test', 'conformance', '--profile', 'full']

/** Runs it and lets it print its report; resolves with its exit status. */
export async function runPublic(model: string, more: readonly string[]): Promise<number> {
  const site = await openSite()
  const command = await startBridge()
  try {
    const page = await site.open()
    await serveIn(page)
    await lend(page, command.url)
    const base = ['--base_url', `${command.url}/v1`, '--model', model]
    const fetched = ['exec', '--yes', '--ignore-scripts', `--package=${PACKAGE}`, '--']
    const shell = process.platform === 'win32'
    const child = spawn('npm', [...fetched, ...RUN, ...base, ...more], { stdio: 'inherit', shell })
    return await new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('exit', (code) => resolve(code ?? 1))
    })
  } finally {
    await command.end()
    await site.close()
  }
}
