/** Files of models that are dropped on the playground. */
import { describeForeignModel } from '../formats.ts'

/** The files of a drop. A folder comes as a handle where the browser has them. */
export interface ChosenFiles {
  /** Name of the file or folder. */
  name: string
  files: readonly File[] | FileSystemDirectoryHandle
}

/** Item with a method that not every browser has. */
type HandleItem = DataTransferItem & {
  getAsFileSystemHandle?: () => Promise<FileSystemHandle | null>
}

/** Resolves with the files of a drop. The transfer is read before the first wait. */
export async function droppedFiles({ items, files }: DataTransfer): Promise<ChosenFiles> {
  const plain = [...files]
  const [first] = [...items] as HandleItem[]
  const handle = await first?.getAsFileSystemHandle?.()
  if (handle instanceof FileSystemDirectoryHandle) return { name: handle.name, files: handle }
  return { name: plain[0]?.name ?? 'model', files: plain }
}

/** Files that were dropped anywhere, for the page of models. */
export interface Drops {
  /** Files that came before the page was open. */
  waiting: ChosenFiles[]
  /** Takes files while the page is open. */
  take?: ((files: ChosenFiles) => void) | undefined
}

/** Returns `true` if the files are those of a model, by the name of one, or by a folder. */
const areOfModel = ({ items, files }: DataTransfer): boolean =>
  [...files].some(({ name }) => /\.(gguf|onnx)$/i.test(name)) ||
  [...items].some((item) => item.webkitGetAsEntry()?.isDirectory)

/** Returns `true` if the files are a model that browsers do not load. */
const areForeign = ({ files }: DataTransfer): boolean =>
  [...files].some(({ name }) => describeForeignModel(name) !== undefined)

/** Calls the function with the files of a model that are dropped anywhere outside of its own zone. */
export function receiveModels(take: (files: ChosenFiles) => void): void {
  document.addEventListener('dragover', (event) => {
    // Without this, the browser opens a dropped file in place of the page.
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  })
  document.addEventListener(
    'drop',
    (event) => {
      const { target, dataTransfer } = event
      const where = target instanceof Element ? target : document.body
      if (!dataTransfer || where.closest('.drop')) return
      // The chat takes images of the same drop, and says itself what it does not take.
      const isForeign = !where.closest('.chat') && areForeign(dataTransfer)
      if (!isForeign && !areOfModel(dataTransfer)) return
      // No other part of the page is to refuse the file.
      event.stopPropagation()
      event.preventDefault()
      void droppedFiles(dataTransfer).then(take)
    },
    { capture: true },
  )
}
