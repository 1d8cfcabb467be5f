/** The buttons that open the pages of models and of the device, whose code is loaded then. */
import type { Server } from '../src/index.ts'
import { byId } from './dom.ts'
import type { Models } from './models.ts'
import { type Drops, receiveModels } from './models-page/dropped.ts'
import { createPage } from './page.ts'

export function openPages(starting: Promise<Server>, models: Models): void {
  const drops: Drops = { waiting: [] }
  const openModels = createPage('Models', async () => {
    const { fillModelsPage } = await import('./models-page/page.ts')
    const onChange = (): void => void models.refresh().catch(() => {})
    return fillModelsPage({ starting, use: models.select, onChange, drops })
  })
  receiveModels((files) => {
    if (drops.take) drops.take(files)
    else drops.waiting.push(files)
    openModels()
  })
  const openDevice = createPage('Device', async () => {
    const { fillDevicePage } = await import('./device/page.ts')
    return fillDevicePage(starting)
  })
  for (const id of ['models-open', 'shelf-open']) {
    byId(id, HTMLButtonElement).addEventListener('click', openModels)
  }
  byId('device-open', HTMLButtonElement).addEventListener('click', openDevice)
}
