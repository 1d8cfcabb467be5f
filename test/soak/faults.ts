/** What happens to the host, the service worker or the storage while an answer is computed. */
import type { Page } from 'playwright'
import { crash, endWorker, workersOf, type WorkerScript } from '../support/dying.ts'
import { call, waitFor, type Stage } from './stage.ts'
import type { Chance } from '../support/random.ts'

export type FaultName =
  | 'none'
  | 'tab closed'
  | 'tab reloaded'
  | 'renderer crashed'
  | 'host worker ended'
  | 'model worker ended'
  | 'service worker stopped'
  | 'service worker updated'
  | 'clock jump'
  | 'network cut'
  | 'quota exhausted'
  | 'host frozen'
  | 'device destroyed'

export interface Scene {
  stage: Stage
  host: Page
  asker: Page
  chance: Chance
}

export interface Fault {
  /** Prepares the origin before the request is sent. */
  prepare?(scene: Scene): Promise<void>
  /** Does the damage. Resolves when it is done. Default: nothing is left to do. */
  strike?(scene: Scene): Promise<void>
  /** Ends what lasts longer than the answer. */
  restore?(scene: Scene): Promise<void>
  /** `true` if the tab that asks must not be the one that hosts, because that one is lost. */
  losesHost?: boolean
  /** `true` if the model has to be downloaded for the request. */
  downloads?: boolean
  /** Part of the message of an error with which the answer may end. Some frames have no code. */
  allowedMessage?: string
}

/** Milliseconds by which the clock jumps: an hour, as in a laptop that slept. */
const CLOCK_JUMP_MS = 3_600_000
/** Bytes that are left of the quota. The model needs 6.4 MB. */
const SPARE_BYTES = 1_000_000

const removeModel = ({ asker }: Scene): Promise<void> =>
  call(asker, (server) => server.models.remove('@soak/guide'))

export const FAULTS: Readonly<Record<FaultName, Fault>> = {
  none: {},
  'tab closed': { losesHost: true, strike: ({ host }) => host.close() },
  'tab reloaded': {
    losesHost: true,
    strike: async ({ host }) => void (await host.reload({ waitUntil: 'commit' })),
    // The page calls serve() no more.
    restore: ({ host }) => host.close(),
  },
  'renderer crashed': { losesHost: true, strike: ({ host }) => crash(host), restore: closeHost },
  'host worker ended': { strike: ({ host }) => endWorkerOf(host, 'worker.js') },
  'model worker ended': { strike: ({ host }) => endWorkerOf(host, 'model-worker.js') },
  'service worker stopped': { strike: ({ stage }) => stage.stopServiceWorkers() },
  'service worker updated': { strike: update },
  'clock jump': { strike: jumpClocks },
  'network cut': {
    downloads: true,
    async prepare(scene) {
      await removeModel(scene)
      const { cuts } = scene.stage.downloads
      cuts.splice(0)
      const count = 1 + scene.chance.below(3)
      for (let cut = 0; cut < count; cut += 1) cuts.push(scene.chance.below(6_000_000))
    },
  },
  'quota exhausted': {
    downloads: true,
    allowedMessage: 'Not enough storage',
    async prepare(scene) {
      await removeModel(scene)
      const usage = await call(scene.asker, async () => (await navigator.storage.estimate()).usage)
      await setQuota(scene, (usage ?? 0) + SPARE_BYTES)
    },
    restore: (scene) => setQuota(scene, undefined),
  },
  'host frozen': {
    losesHost: true,
    strike: ({ host }) => setLifecycle(host, 'frozen'),
    restore: ({ host }) => setLifecycle(host, 'active'),
  },
  'device destroyed': { strike: ({ host }) => destroyDevice(host) },
}

/** A crashed tab keeps its place until it is closed. */
async function closeHost({ host }: Scene): Promise<void> {
  await host.close()
}

async function endWorkerOf(page: Page, script: WorkerScript): Promise<void> {
  await endWorker(await waitFor(() => workersOf(page, script)[0], script))
}

/** Publishes another service worker script, and has the browser find it. */
async function update({ stage: { site }, asker, chance }: Scene): Promise<void> {
  const response = await fetch(`${site.url}/sw.js`)
  const [script = ''] = (await response.text()).split('\n// version ')
  site.pages['/sw.js'] = `${script}\n// version ${chance.below(2 ** 30)}`
  await asker.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready
    await registration.update()
  })
}

/** Moves the clock of every thread of the host, and of the service worker. */
async function jumpClocks({ stage, host, chance }: Scene): Promise<void> {
  const milliseconds = chance.pick([CLOCK_JUMP_MS, -CLOCK_JUMP_MS])
  await host.evaluate(jump, milliseconds)
  for (const worker of [...host.workers(), ...stage.site.context.serviceWorkers()])
    await worker.evaluate(jump, milliseconds).catch(() => undefined)
}

function jump(milliseconds: number): void {
  const { now } = Date
  Date.now = () => now() + milliseconds
}

async function setQuota(
  { stage: { site }, asker }: Scene,
  quotaSize: number | undefined,
): Promise<void> {
  const session = await site.context.newCDPSession(asker)
  await session.send('Storage.overrideQuotaForOrigin', { origin: site.url, quotaSize })
  // The override ends with its session.
  if (quotaSize === undefined) await session.detach()
}

async function setLifecycle(page: Page, state: 'frozen' | 'active'): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state })
  await session.detach()
}

/** The device of the model worker is lost. */
async function destroyDevice(page: Page): Promise<void> {
  const worker = await waitFor(() => workersOf(page, 'model-worker.js')[0], 'a model worker')
  await worker.evaluate(() => {
    const { devices = [] } = globalThis as unknown as { devices?: GPUDevice[] }
    for (const device of devices) device.destroy()
  })
}
