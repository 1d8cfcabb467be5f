/** Entry of the playground, which creates its parts. Each part is one module. */
import { createAttachments } from './attachments.ts'
import { createChat } from './chat/chat.ts'
import { createCompare } from './compare/index.ts'
import { createComposer } from './composer.ts'
import { showDevice } from './device.ts'
import { createDigits } from './digits.ts'
import { byId } from './dom.ts'
import { createEdges } from './edges.ts'
import { createHistoryButton } from './history/button.ts'
import { createHistoryStore } from './history/store.ts'
import { createInspector } from './inspector.ts'
import { createLending } from './lend.ts'
import { createLikeness } from './likeness.ts'
import { createLoading } from './loading.ts'
import { createModels } from './models.ts'
import { createPalette } from './palette/index.ts'
import { keepStyle } from './kept.ts'
import { openPages } from './pages.ts'
import { createPanel } from './panel.ts'
import { createSettings } from './settings.ts'
import { createShelf } from './shelf.ts'
import { start } from './start.ts'
import { createTheme } from './theme.ts'
import { createTools } from './tools/index.ts'

byId('unstarted', HTMLElement).remove()
createTheme()
keepStyle()
const panel = createPanel()
const { starting: server, restart } = start()
const loading = createLoading(server)
const models = createModels(server, loading)
const history = createHistoryStore()
const tools = createTools()
const composer = createComposer()

const chat = createChat({
  server,
  loading,
  models,
  settings: createSettings(),
  composer,
  attachments: createAttachments({ composer, admit: models.admitImages }),
  inspector: createInspector(server),
  history,
  tools,
})
createHistoryButton(history, chat)
createDigits(server)
createEdges(server)
createLikeness(server)
createLending(server)
let hasForms = false
const showForms = (): void => {
  if (hasForms) return
  hasForms = true
  void import('./predictors/index.ts').then(({ createPredictors }) => createPredictors(server))
}
panel.onShow('predictors', [showForms])
openPages({ starting: server, restart, models })
panel.onShow('settings', [showDevice(server), createShelf(server)])
createCompare(server)
createPalette()
