/** Entry of the playground, which creates its parts. Each part is one module. */
import { createAttachments } from './attachments.ts'
import { createChat } from './chat.ts'
import { createComposer } from './composer.ts'
import { createConversation } from './conversation.ts'
import { showDevice } from './device.ts'
import { createDigits } from './digits.ts'
import { createEdges } from './edges.ts'
import { createInspector } from './inspector.ts'
import { createLikeness } from './likeness.ts'
import { createLoading } from './loading.ts'
import { createModels } from './models.ts'
import { createPanel } from './panel.ts'
import { createSettings } from './settings.ts'
import { createShelf } from './shelf.ts'
import { start } from './start.ts'
import { createTheme } from './theme.ts'

createTheme()
const panel = createPanel()
const server = start()
const loading = createLoading(server)

createChat({
  server,
  loading,
  models: createModels(server, loading),
  settings: createSettings(),
  composer: createComposer(),
  attachments: createAttachments(),
  conversation: createConversation(),
  inspector: createInspector(),
})
createDigits(server)
createEdges(server)
createLikeness(server)
panel.onShow('settings', [showDevice(server), createShelf(server)])
