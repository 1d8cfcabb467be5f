import { button, byId, element } from './dom.ts'
import { receiveFiles } from './files.ts'
import { describeForeignModel } from './formats.ts'
import type { Composer } from './composer.ts'
import { notice, wordsOf } from './notice.ts'

/** Media types that `/v1` takes. */
const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Question about images whose sender has typed nothing yet. */
const QUESTION = 'What is in this picture?'

/** Key of the images that wait in this tab, which a reload does not lose. */
const DRAFT = 'playground:draft-images'

interface Parts {
  composer: Pick<Composer, 'suggest'>
  /** Resolves with `false` if no model takes images. */
  admit(): Promise<boolean>
}

/** Images that are sent with the next question. */
export interface Attachments {
  /** Returns the images as data URLs, and removes them. */
  take(): string[]
}

/** Creates the list of images: files, pictures of the camera, and what is pasted or dropped. */
export function createAttachments({ composer, admit }: Parts): Attachments {
  const list = byId('images', HTMLUListElement)
  const input = byId('image-file', HTMLInputElement)
  const urls = new Map<HTMLElement, string>()
  const buttons = [byId('attach', HTMLButtonElement), byId('camera', HTMLButtonElement)] as const

  function remove(item: HTMLElement): void {
    urls.delete(item)
    item.remove()
    list.hidden = urls.size === 0
    keep()
  }

  /** Notes the images for a reload, as far as they fit into the storage of the tab. */
  function keep(): void {
    const draft = Array.from(list.querySelectorAll('img'), ({ alt, src }) => [alt, src])
    try {
      sessionStorage.setItem(DRAFT, JSON.stringify(draft))
    } catch {
      sessionStorage.removeItem(DRAFT)
    }
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
    keep()
  }

  async function add(files: readonly File[]): Promise<void> {
    const images = files.filter(({ type }) => MEDIA_TYPES.includes(type))
    for (const { name } of files.filter((file) => !images.includes(file))) {
      const words =
        describeForeignModel(name) ?? `${name} is not an image of PNG, JPEG, GIF or WebP.`
      notice(words, 'mild')
    }
    if (images.length === 0 || !(await admit())) return
    for (const file of images) show(file.name, await toDataUrl(file))
    composer.suggest(QUESTION)
  }

  const addOrTell = (files: readonly File[]): void => void add(files).catch(tell)
  const tell = (error: unknown): void => void notice(wordsOf(error), 'mild')

  /** Adds a picture of the camera, whose dialog is loaded now. */
  async function photograph(): Promise<void> {
    const { takePicture } = await import('./camera.ts')
    const picture = await takePicture()
    if (picture) await add([picture])
  }

  buttons[0].addEventListener('click', () => input.click())
  buttons[1].addEventListener('click', () => void photograph().catch(tell))
  input.addEventListener('change', () => {
    addOrTell([...(input.files ?? [])])
    // The same file can be chosen again after it was removed.
    input.value = ''
  })
  const draft = JSON.parse(sessionStorage.getItem(DRAFT) ?? '[]') as [string, string][]
  for (const [name, url] of draft) show(name, url)
  const chat = byId('scroll', HTMLElement).parentElement ?? document.body
  receiveFiles(chat, addOrTell)

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
