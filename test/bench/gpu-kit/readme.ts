/** The README.md of a kit. */
import { DRIVER_FILES, flagsOf } from './browser.ts'
import { FULL, MORE, STREAMS } from './plan.ts'

export interface KitFacts {
  /** Version of glibc on the machine that made the kit. */
  glibc: string
  /** Shapes for which the kit has a library that MLC compiled. */
  shapes: readonly string[]
}

/** Returns the text. */
export const writeReadme = ({ glibc, shapes }: KitFacts): string => `# GPU kit of inorigin's bench

It measures inorigin beside ${shapes.length > 0 ? 'transformers.js, wllama and WebLLM' : 'transformers.js and wllama'} in headless Chromium, on random weights. It has its own Node.js, Chromium and libraries, and uses no network.

## Run it

    sh part-1/unpack.sh /opt/kit part-1 part-2 ...   # all folders; each piece is checked to be there
    /opt/kit/run.sh --adapter f16 --json f16.json
    /opt/kit/run.sh --adapter plain --json plain.json

The first line that a run prints names the adapter: look at it before you wait. The table comes last. The JSON file is written after each side, so a run that is ended has what it measured.

- \`--adapter f16\` (default): half precision, which Chromium offers on NVIDIA's driver for Linux only with a flag. \`plain\`: as users have it, with 32-bit activations. \`swiftshader\`: no GPU, to try the kit.
- \`--models 500M,1500M\` (default): shapes of Qwen2.5-0.5B and -1.5B. They are written to \`data\` first, which takes 2 GB and 4.5 GB for both adapters, and a minute on slow processors.
- \`--sides inorigin,transformers,webllm,wllama\`: default: those that the kit has.
- \`--rounds ${FULL.rounds}\` (default): answers after each prompt, whose median counts.
- \`--tiny\`: a tiny model and few tokens. \`run.sh --adapter swiftshader --tiny\` shows within minutes that a kit works.

It exits with 1 if a side failed, and says below the table what failed.

## What it needs

- x86-64 Linux with glibc ${glibc} or later, \`sh\`, \`tar\`, \`gzip\`, and about 8 GB of disk.
- NVIDIA's driver with its Vulkan part. In a container, its capabilities must include \`graphics\`, such as \`NVIDIA_DRIVER_CAPABILITIES=all\`.
- \`VK_DRIVER_FILES\`: the file that names the driver to Vulkan's loader. \`run.sh\` looks for ${DRIVER_FILES.map((file) => `\`${file}\``).join(', ')}; set the variable if it is elsewhere.
- \`LD_LIBRARY_PATH\` is set by \`run.sh\`: the kit has the libraries of GLVND and X11, without which the driver finds no device, and containers have those of the driver in \`/usr/local/nvidia/lib64\`.
- Flags of Chromium: \`${flagsOf('f16').join(' ')}\`; the one for half precision is left out by \`--adapter plain\`.

## What the table has

- decode: tokens per second after the first token, at ${FULL.contexts.join(' and ')} tokens of context. "Without drafts" is the row to compare: random weights repeat themselves, and drafts make that fast.
- first token: milliseconds from a new prompt of so many tokens.
- turns: milliseconds to the first token of a prompt of ${FULL.history} tokens, and of the same with ${MORE} more.
- ${STREAMS} at once: their tokens per second together over those of one after the other.
- dispatches per token: after prompts of each length. A side that dispatches in a thread of its own has none.
- load: until the model answers, in a new browser, and again in the same one.
${shapes.length > 0 ? `\nWebLLM has libraries for: ${shapes.join(', ')}. Their quantization must be q4f16_1 for \`f16\`, and q4f32_1 for \`plain\`.\n` : ''}`
