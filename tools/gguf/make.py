"""Makes a folder for `npm run test:gguf -- --dir DIR`: GGUF files, with the answers that their values give.

    python make.py --dir DIR --gguf FILE [--types Q4_K Q6_K ...] [--prompts 20]

FILE is copied, with its greedy answers as `NAME.json`: transformers reads the same file and computes in
32 bits. For each of the types, a file has the same model in that type, and its JSON the best tokens of
that file in the places of the first file's answers. A matrix whose rows no block divides becomes Q8_0.
"""

import argparse
import collections
import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from quantize import QUANTIZE, quantize

sys.path.append(str(Path(__file__).parents[1] / "exporters"))
from fidelity_prompts import list_prompts  # noqa: E402

PROMPTS = 20
ANSWER_TOKENS = 64
TYPES = gguf.GGMLQuantizationType
ALL = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 MXFP4".split() + list(QUANTIZE)


def values_of(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def convert(matrix, name):
    """Returns the bytes of a matrix and their type."""
    kind = TYPES[name]
    if matrix.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] != 0:
        name, kind = "Q8_0", TYPES.Q8_0
    if name in ("F32", "F16"):
        return matrix.astype(np.float32 if name == "F32" else np.float16), kind
    return (quantize(matrix, name) if name in QUANTIZE else gguf.quants.quantize(matrix, kind)), kind


def write_as(source, path, name):
    """Writes the file with its matrices in a type. Returns the number of matrices of each type."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        kind, inner = field.types[0], field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), kind, sub_type=inner)
    counts = collections.Counter()
    for tensor in reader.tensors:
        if len(tensor.shape) < 2:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        data, kind = convert(values_of(tensor), name)
        counts[kind.name] += 1
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return dict(counts)


def read_model(path):
    given = dict(pretrained_model_name_or_path=path.parent, gguf_file=path.name)
    return transformers.AutoModelForCausalLM.from_pretrained(**given, dtype=torch.float32).eval()


def encode_prompts(path, count):
    """Returns the tokens of the first prompts: those of the chat template, or of the text if there is none."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    made = []
    for prompt in list_prompts()[:count]:
        if tokenizer.chat_template:
            messages = [{"role": "user", "content": prompt}]
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            made.append(tokenizer.encode(text, add_special_tokens=False))
        else:
            made.append([tokenizer.bos_token_id, *tokenizer.encode(prompt, add_special_tokens=False)])
    return made


@torch.no_grad()
def write_answer(model, prompt, count=ANSWER_TOKENS):
    """Returns the greedy answer, one token after the other."""
    answer, cache, pending = [], None, prompt
    ends = model.generation_config.eos_token_id
    while len(answer) < count:
        found = model(torch.tensor([pending]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        pending, cache = [int(found.logits[0, -1].argmax())], found.past_key_values
        answer += pending
        if answer[-1] in (ends if isinstance(ends, list) else [ends]):
            break
    return answer


@torch.no_grad()
def judge(model, prompt, answer):
    """Returns the best token in place of each one of an answer, and its margin over the second best."""
    rows = len(answer) + 1
    logits = model(torch.tensor([prompt + answer]), logits_to_keep=rows).logits[0, -rows:-1]
    best = logits.topk(2)
    margins = (best.values[:, 0] - best.values[:, 1]).tolist()
    return {
        "prompt": prompt,
        "answer": answer,
        "best": best.indices[:, 0].tolist(),
        "margins": [round(margin, 4) for margin in margins],
    }


def write_reference(path, model, answers, counts):
    judged = [judge(model, prompt, answer) for prompt, answer in answers]
    about = {"transformers": transformers.__version__, "matrices": counts}
    path.with_suffix(".json").write_text(json.dumps({**about, "answers": judged}))
    print(f"{path.name}: {counts}, {sum(len(answer) for _, answer in answers)} tokens", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="folder to write to")
    parser.add_argument("--gguf", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--types", nargs="*", choices=ALL, default=[], help="types of further files")
    parser.add_argument("--prompts", type=int, default=PROMPTS, help=f"default: {PROMPTS}")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()
    source = given.dir / given.gguf.name
    known = source.with_suffix(".json")
    if known.exists():
        stored = json.loads(known.read_text())["answers"]
        answers = [(each["prompt"], each["answer"]) for each in stored]
    else:
        shutil.copy(given.gguf, source)
        model = read_model(source)
        answers = [(prompt, write_answer(model, prompt)) for prompt in encode_prompts(source, given.prompts)]
        types = collections.Counter(each.tensor_type.name for each in gguf.GGUFReader(source).tensors)
        write_reference(source, model, answers, dict(types))
    for name in given.types:
        path = given.dir / f"{source.stem}-as-{name}.gguf"
        counts = write_as(source, path, name)
        write_reference(path, read_model(path), answers, counts)


if __name__ == "__main__":
    main()
