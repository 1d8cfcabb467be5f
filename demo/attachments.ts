import { button, byId, element } from './dom.ts'
import { receiveFiles } from './files.ts'
import { notice } from './notice.ts'

/** Media types that `/v1` takes. */
const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Images that are sent with the next question. */
export interface Attachments {
  /** Returns the images as data URLs, and removes them. */
  take(): string[]
}

/** Creates the list of images. They come from files, from the clipboard, or are dropped on the page. */
export function createAttachments(): Attachments {
  const list = byId('images', HTMLUListElement)
  const input = byId('image-file', HTMLInputElement)
  const urls = new Map<HTMLElement, string>()

  function remove(item: HTMLElement): void {
    urls.delete(item)
    item.remove()
    list.hidden = urls.size === 0
  }

  function show(name: string, url: string): void {
    const item = element('li', '')
    const image = Object.assign(new Image(), { src: url, alt: name })
    item.append(
      image,
      button(`Remove ${name}`, 'plain', () => remove(item)),
    )
    urls.set(item, url)
    list.append(item)
    list.hidden = false
  }

  async function add(files: readonly File[]): Promise<void> {
    for (const file of files) {
      if (MEDIA_TYPES.includes(file.type)) show(file.name, await toDataUrl(file))
      else notice(`${file.name} is not an image of PNG, JPEG, GIF or WebP.`, 'mild')
    }
  }

  byId('attach', HTMLButtonElement).addEventListener('click', () => input.click())
  input.addEventListener('change', () => {
    void add([...(input.files ?? [])])
    // The same file can be chosen again after it was removed.
    input.value = ''
  })
  const chat = byId('scroll', HTMLElement).parentElement ?? document.body
  receiveFiles(chat, (files) => void add(files))

  return {
    take() {
      const taken = [...urls.values()]
      for (const item of urls.keys()) remove(item)
      return taken
    },
  }
}

function toDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}
