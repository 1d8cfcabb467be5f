import { element } from './dom.ts'

/**
 * Calls the function with the files that are pasted into an element or dropped on it. Texts that are
 * pasted or dropped stay with the element.
 */
export function receiveFiles(target: HTMLElement, take: (files: readonly File[]) => void): void {
  function receive(event: Event, transfer: DataTransfer | null): void {
    const files = [...(transfer?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    take(files)
  }

  target.addEventListener('paste', (event) => receive(event, event.clipboardData))
  target.addEventListener('dragover', (event) => {
    // Without this, the browser opens a dropped file in place of the page.
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  })
  target.addEventListener('drop', (event) => receive(event, event.dataTransfer))
}

/** Offers content to save as a file. */
export function saveFile(name: string, content: Blob): void {
  const link = element('a', '')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // A browser may read the address after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
