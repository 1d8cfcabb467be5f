const TEXT = `Usage: inorigin init [folder] [options]
       inorigin add <model.onnx|folder> --tag @me/name [options]
       inorigin types [catalog] [-o file.d.ts]
       inorigin catalog refresh <file> [--host <url>]

init

Copies the service worker script, the runtime and the embedded models into your app's
public folder, where serve() finds them. package.json remembers the folder: without an
argument, \`inorigin init\` refreshes it, for example after an update of the package.

  folder         Folder that your web server serves at the root of your app, such as public
  --no-guide     Leave out the embedded language model (--guide adds it again)
  --mlc          Add WebLLM (6 MB), which runs models compiled by MLC, and the catalog of
                 its models, inorigin/catalogs/mlc.json (--no-mlc removes both)
  --sw <name>    File name of the service worker script (default: sw.js)
  --own-sw       Write no script, because your own one calls attach() of 'inorigin/sw'

add

Adds an ONNX model to your app as a predictor: drafts its signature from the inputs and
outputs of the graph, tests it in the runtime, copies its files to
<public>/inorigin/@me/name and lists it in <public>/inorigin/catalog.json. A folder with
config.json, tokenizer.json and onnx/ becomes a chat model or a text encoder. A folder of
a model compiled by MLC, with its library, becomes a chat model that WebLLM runs.

  --tag <tag>    Name that requests use for the model, such as @me/name
  --name <name>  Display name (default: the file name)
  --public <folder>        Your app's public folder (default: the one passed to init)
  --max-file-bytes <n>     Split larger files, for hosts with a limit (default: 25000000)
  --device <device>        Use only webgpu, or only wasm (default: both)
  --dtypes <list>          Add only these precisions of a folder, such as q4,q4f16
  --tensor <input>         Keep an input that looks like an image as a tensor; may be repeated
  --image <input>          Make an input an image; may be repeated
  --size <w>x<h>           Size of images, such as 224x224, or x48 for a free width
  --multiple-of <n>        Make free sides of images multiples of n
  --channels <name>        Channels of images: gray, rgb, bgr or rgba
  --fit <mode>             Resize images by stretch, contain, cover or pad
  --mean <numbers>         Mean to subtract from images, such as 0.485,0.456,0.406
  --std <numbers>          Standard deviation to divide images by
  --output <name>          Declare only this output; may be repeated
  --state <in>=<out>       Carry an output to the next prediction of a session
  --audio <input>=<rate>   Let an input take sound with that many samples per second
  --window <n>             Number of samples that the model takes at once
  --force        Replace an entry of that tag and its files

types

Writes TypeScript types for the predictors of a catalog, so that the inputs and outputs of
server.predict('@me/name', { ... }) are typed.

  catalog        Path of the catalog (default: those in the public folder)
  -o, --out <file>         File to write (default: print to the terminal)
  --public <folder>        Your app's public folder (default: the one passed to init)

catalog refresh

Looks up every model that a catalog lists by its hub repository or as a WebLLM model
("mlc"), and writes its commit, files, lengths and hashes into the catalog, so that
browsers need no look-up.

  file           The catalog, a JSON document
  --host <url>   Mirror to use instead of the hub that entries name
  HF_TOKEN       Environment variable with an access token for private repositories

  --help         Show this help
  --version      Show the version

Exit codes: 0 for success, 1 for a failure, 2 for wrong usage, 130 after an interrupt.`

/** Lines of the output of `inorigin --help`. */
export const HELP: readonly string[] = TEXT.split('\n')
