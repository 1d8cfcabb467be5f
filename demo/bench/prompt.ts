/** Prompts of random words, which no prefix cache has seen. */

const WORDS =
  'after again air animal answer back because between book boy call change city close come country ' +
  'day different door down each earth end eye face family far father few find first follow food form ' +
  'four garden girl give good great group hand hard head help high home house idea keep kind know land ' +
  'large last late learn leave letter life light line little long look make many mean more morning most ' +
  'mother mountain move much name near never next night number often only open other page paper part ' +
  'people place plant play point river room run school sea second sentence side small song sound spell ' +
  'stand start state stop story study sun table tell thing think three time together town tree turn ' +
  'walk watch water white window winter word work world write year young'

const VOCABULARY = WORDS.split(' ')

/** Returns this many random words as text. Two calls give different texts. */
function drawWords(count: number): string {
  const numbers = crypto.getRandomValues(new Uint16Array(Math.max(1, count)))
  return Array.from(numbers, (number) => VOCABULARY[number % VOCABULARY.length]).join(' ')
}

/** Number of words of the two texts whose lengths in tokens give those of other texts. */
const SAMPLE_WORDS = [20, 220] as const

/** Draws a text whose prompt has about this many tokens. */
export type DrawPrompt = (tokens: number) => string

/**
 * Resolves with a function that draws prompts of a given length. `count` resolves with the number
 * of tokens of the prompt that holds a text.
 */
export async function createPrompts(count: (text: string) => Promise<number>): Promise<DrawPrompt> {
  const [few, many] = SAMPLE_WORDS
  const least = await count(drawWords(few))
  const perWord = ((await count(drawWords(many))) - least) / (many - few)
  return (tokens) => drawWords(Math.max(1, Math.floor(few + (tokens - least) / perWord)))
}
