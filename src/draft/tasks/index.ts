/** Makes the draft of a graph one of its task: labels, vectors or scores instead of bare tensors. */
import type { OnnxModel } from '../model.ts'
import type { Draft, KeepTensor } from '../signature.ts'
import { draftClasses } from './classes.ts'
import { draftEmbeddings } from './embeddings.ts'
import type { TaskFiles } from './files.ts'
import { draftImages } from './images.ts'
import { draftPictures } from './pictures.ts'
import { draftSounds } from './sounds.ts'
import type { TaskDraft } from './task-draft.ts'
import { draftSpeech } from './speech.ts'
import { draftVoice } from './voice.ts'
import { draftTokens } from './tokens.ts'
import { draftImageLabels } from './zero-shot.ts'

/** Returns the draft of the task that the files of a folder tell. Throws `invalid_request`. */
export function draftTask(
  draft: Draft,
  model: OnnxModel,
  files: TaskFiles,
  keep: KeepTensor,
): TaskDraft {
  const prepared = draftSounds(draftImages(draft, model, files, keep), model, files, keep)
  return (
    draftEmbeddings(prepared, model, files) ??
    draftClasses(prepared, model, files) ??
    draftTokens(prepared, model, files) ??
    draftImageLabels(prepared, model, files) ??
    draftPictures(prepared, model, files) ??
    draftSpeech(prepared, model, files) ??
    draftVoice(model, files, keep) ??
    prepared
  )
}
