import type { Server, Tag } from '../src/index.ts'
import { byId } from './dom.ts'
import { keepModel } from './kept.ts'
import { createListing, findSeeing, GUIDE, type ListedModel } from './listing.ts'
import type { Loading } from './loading.ts'
import { notice, wordsOf } from './notice.ts'
import { createPreparation } from './preparation.ts'
import type { Recommendation } from './recommendation.ts'
import type { StripAction } from './strip.ts'
import { whenWanted } from './wanted.ts'

export interface Models {
  /**
   * Resolves with the selected model once the listing has arrived, and the visitor has agreed to a
   * large download.
   */
  chosen(): Promise<ListedModel>
  /** Resolves with the selected model, if any, once the listing has arrived. It downloads nothing. */
  selected(): Promise<ListedModel | undefined>
  /** Resolves with a model of the listing; with `undefined` if it is not there. */
  find(tag: Tag): Promise<ListedModel | undefined>
  /**
   * Selects the model that comes with the page and sees, if the selected one takes no images, and
   * says so. Resolves with `false` if no model takes them, which is said likewise.
   */
  admitImages(): Promise<boolean>
  /** Resolves with the model that suits this device best; with `undefined` if none does. */
  recommended(): Promise<Recommendation | undefined>
  /** Selects a model that chats, as if the visitor had done it. */
  select(tag: Tag): void
  /** Reads the listing and the states again, for example after a download or an import. */
  refresh(): Promise<void>
  /** Returns the ways out if the selected model cannot be loaded. */
  remedies(): readonly StripAction[]
}

/** Creates the selector of models: those that `GET /v1/models` lists and that chat. */
export function createModels(starting: Promise<Server>, loading: Loading): Models {
  const select = byId('model', HTMLSelectElement)
  const { isOffered, refresh } = createListing(starting, select)

  const canUseGuide = (tag: Tag): boolean => tag !== GUIDE && isOffered(GUIDE)
  const remedies = (tag: Tag): readonly StripAction[] =>
    canUseGuide(tag) ? [{ label: 'Use the guide', run: () => pick(GUIDE) }] : []
  const preparation = createPreparation({ starting, loading, select, canUseGuide, use: pick })

  const findSelected = (models: readonly ListedModel[]): ListedModel | undefined =>
    models.find(({ id }) => id === select.value)

  /** Selects a model as the visitor does, so that the parts of the page that depend on it follow. */
  function pick(tag: Tag): void {
    select.value = tag
    select.dispatchEvent(new Event('change'))
  }

  async function choose(tag: Tag): Promise<void> {
    keepModel(tag)
    preparation.want()
    try {
      if ((await preparation.consent(tag)) && select.value === tag) loading.load(tag).catch(ignore)
    } catch (error) {
      const again = { label: 'Try again', run: () => pick(tag) }
      loading.say(wordsOf(error), [again, ...remedies(tag)])
    }
  }

  let listing = refresh()
  listing.then(preparation.prepare).catch((error: unknown) => {
    if (select.value === '' || select.disabled) showFailure(select, error)
  })
  select.addEventListener('change', () => void choose(select.value))
  loading.onFailure(remedies)
  // A model that was loaded is on this device now.
  loading.onEnd(() => void refresh().catch(ignore))
  whenWanted(() => {
    preparation.want()
    void listing.then(preparation.prepare).catch(ignore)
  })

  return {
    async chosen() {
      preparation.want()
      const models = await listing.catch(() => (listing = refresh()))
      const model = findSelected(models)
      if (!model) throw new Error('The catalog lists no chat model. Use another catalog.')
      await preparation.assertConsent(model)
      return model
    },
    selected: async () => findSelected(await listing),
    find: async (tag) => (await listing).find(({ id }) => id === tag),
    async admitImages() {
      const models = await listing
      const model = findSelected(models)
      if (!model) return true
      const seeing = findSeeing(models, model)
      const what = `${model.display_name} takes no images`
      if (!seeing) notice(`${what}. Choose another model for them.`, 'mild')
      else if (seeing !== model) {
        pick(seeing.id)
        notice(`${what}, so ${seeing.display_name} answers from now on.`, 'mild')
      }
      return seeing !== undefined
    },
    async recommended() {
      const server = await starting
      const { findRecommendation, readPlace } = await import('./recommendation.ts')
      return findRecommendation(server, await readPlace(server))
    },
    select(tag) {
      // A model that was just added may not be in the listing yet.
      const listed = isOffered(tag) ? Promise.resolve() : refresh()
      void listed.then(() => isOffered(tag) && pick(tag)).catch(ignore)
    },
    async refresh() {
      listing = refresh()
      await listing
    },
    remedies: () => remedies(select.value),
  }
}

/** Shows that there is no model to choose. */
function showFailure(select: HTMLSelectElement, error: unknown): void {
  select.replaceChildren(new Option('No model', ''))
  byId('model-name', HTMLElement).textContent = 'No model'
  const reload = { label: 'Reload', run: () => location.reload() }
  // A server that did not start has shown its own error.
  if (window.inorigin) notice(`The models could not be listed. ${wordsOf(error)}`, 'bad', reload)
}

/** Ignores a failed load, because the strip above the composer shows it. */
function ignore(): void {}
