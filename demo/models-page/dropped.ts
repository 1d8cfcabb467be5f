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
