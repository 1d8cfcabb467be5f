/** Drafts recognizers of speech that score letters: CTC, as wav2vec2 does. */
import { isObject } from '../../values/objects.ts'
import type { OnnxModel } from '../model.ts'
import { architectureOf, type Config, positive, type TaskFiles } from './files.ts'
import { type TaskDraft, withOutput } from './task-draft.ts'

/** Returns the draft of a recognizer of speech; `null` if the graph is none. */
export function draftSpeech(
  draft: TaskDraft,
  { outputs }: OnnxModel,
  { config, tokenizer, vocabulary }: TaskFiles,
): TaskDraft | null {
  const logits = outputs.find(({ name, shape }) => name === 'logits' && shape?.length === 3)
  const isHeard = Object.values(draft.bindings).some(({ audio }) => audio)
  if (!architectureOf(config).endsWith('ForCTC') || !logits || !isHeard) return null
  const letters = readLetters(vocabulary, tokenizer)
  if (letters.size === 0) {
    const note =
      'The model scores letters, but there is no vocab.json. Copy it from the original model.'
    return { ...draft, notes: [...draft.notes, note] }
  }
  const classes = positive(logits.shape?.at(-1)) ?? Math.max(...letters.values()) + 1
  const names = Array<string>(classes).fill('')
  for (const [letter, index] of letters) names[index] = letter
  const blank = letters.get(textOf(tokenizer['pad_token'])) ?? Number(config['pad_token_id'] ?? 0)
  names.splice(blank, 1)
  const isLower = tokenizer['do_lower_case'] === true
  return withOutput(
    draft,
    { name: 'text', type: 'string', description: 'The words that were spoken.' },
    {
      tensor: 'logits',
      steps: [
        {
          step: 'ctc',
          labels: { names: isLower ? names.map((name) => name.toLowerCase()) : names },
          blank,
          delimiter: textOf(tokenizer['word_delimiter_token']) || '|',
        },
      ],
    },
  )
}

/** Returns the letters with their classes. Vocabularies of several languages have one for each. */
function readLetters(vocabulary: Config, { target_lang: language }: Config): Map<string, number> {
  const part = typeof language === 'string' ? vocabulary[language] : undefined
  return new Map(
    Object.entries(isObject(part) ? part : vocabulary).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    ),
  )
}

/** Returns a token of `tokenizer_config.json`, which is text or an object with it. */
function textOf(token: unknown): string {
  const text = isObject(token) ? token['content'] : token
  return typeof text === 'string' ? text : ''
}
