import { button, byId, element } from './dom.ts'
import { receiveFiles } from './files.ts'
import type { ListedModel } from './listing.ts'
import { notice, wordsOf } from './notice.ts'

/** Media types that `/v1` takes. */
const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** Images that are sent with the next question. */
export interface Attachments {
  /** Returns the images as data URLs, and removes them. */
  take(): string[]
  /** Takes images only if the model does. */
  fit(model: ListedModel): void
}

/** Creates the list of images: files, pictures of the camera, and what is pasted or dropped. */
export function createAttachments(): Attachments {
  const list = byId('images', HTMLUListElement)
  const input = byId('image-file', HTMLInputElement)
  const urls = new Map<HTMLElement, string>()
  const buttons = [byId('attach', HTMLButtonElement), byId('camera', HTMLButtonElement)] as const
  const titles = buttons.map(({ title }) => title)
  /** Why no image is taken now, if none is. */
  let refusal: string | undefined

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
    if (refusal !== undefined) return void notice(refusal, 'mild')
    for (const file of files) {
      if (MEDIA_TYPES.includes(file.type)) show(file.name, await toDataUrl(file))
      else notice(`${file.name} is not an image of PNG, JPEG, GIF or WebP.`, 'mild')
    }
  }

  /** Adds a picture of the camera, whose dialog is loaded now. */
  async function photograph(): Promise<void> {
    const { takePicture } = await import('./camera.ts')
    const picture = await takePicture()
    if (picture) await add([picture])
  }

  buttons[0].addEventListener('click', () => input.click())
  buttons[1].addEventListener('click', () => {
    photograph().catch((error: unknown) => notice(wordsOf(error), 'mild'))
  })
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
    fit({ display_name: name, capabilities }) {
      const canSee = capabilities?.['image_input']?.supported !== false
      refusal = canSee ? undefined : `${name} takes no images. Choose another model for them.`
      for (const [at, each] of buttons.entries()) {
        each.disabled = !canSee
        each.title = refusal ?? titles[at] ?? ''
      }
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
