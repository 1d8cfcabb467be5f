"""Writes `reference.json` beside each folder: the answers of its files outside the browser.

The file of 32 bits is compared with transformers itself, so that a mistake of the exporter is seen
too; every other precision with its own values, computed in 32 bits where they can be (`exact.py`).
"""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import transformers

from exact import load_exact
from models import prompt_text

ANSWER_TOKENS = 16
TOP = 8
TYPES = {
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
TEXTS = prompt_text()


class Chat:
    """Turns messages into tokens, and tokens into text and bytes."""

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        # The byte of each character in which byte-level tokens are written.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        self.byte_of = {chr(byte): byte for byte in printable}
        others = (byte for byte in range(256) if byte not in printable)
        self.byte_of.update({chr(256 + at): byte for at, byte in enumerate(others)})

    def encode(self, messages):
        text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens):
        return self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def to_bytes(self, token):
        """Returns the bytes of a token; those of its name for a special token."""
        text = self.tokenizer.convert_ids_to_tokens(token)
        if text in self.tokenizer.all_special_tokens:
            return list(text.encode())
        return [self.byte_of[character] for character in text]


class TorchModel:
    """The model before its export."""

    name = "transformers"

    def __init__(self, source):
        kind = transformers.AutoConfig.from_pretrained(source).architectures[0]
        self.model = getattr(transformers, kind).from_pretrained(source, attn_implementation="eager").float().eval()

    @torch.no_grad()
    def run(self, tokens, past):
        """Returns the logits after the tokens, and the cache. `past` is that of an earlier call, or None."""
        found = self.model(torch.tensor([tokens]), past_key_values=past, use_cache=True, logits_to_keep=1)
        return found.logits[0, -1].float().numpy(), found.past_key_values


class OnnxModel:
    """An exported file, whose own values ONNX Runtime computes."""

    def __init__(self, path, head_size):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 2
        model, self.name = load_exact(path)
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.head_size = head_size
        self.inputs = self.session.get_inputs()
        self.outputs = [output.name for output in self.session.get_outputs()]

    def run(self, tokens, past):
        """Returns the logits after the tokens, and the cache. `past` is that of an earlier call, or None."""
        length, cache = past or (0, self.empty_cache())
        inputs = {
            each.name: self.create_input(each, tokens, length) for each in self.inputs if each.name not in cache
        }
        found = dict(zip(self.outputs, self.session.run(self.outputs, {**inputs, **cache})))
        cache = {name: found[self.output_of(name)] for name in cache}
        return found["logits"][0, -1].astype(np.float32), (length + len(tokens), cache)

    def empty_cache(self):
        return {
            each.name: np.zeros([self.size_of(size) for size in each.shape], TYPES[each.type])
            for each in self.inputs
            if each.name.startswith("past")
        }

    def output_of(self, name):
        found = name.replace("past_key_values", "present")
        return found if found in self.outputs else name.replace("past", "present")

    def create_input(self, given, tokens, length):
        kind = TYPES[given.type]
        if given.name == "input_ids":
            return np.array([tokens], kind)
        if given.name == "attention_mask":
            return np.ones((1, length + len(tokens)), kind)
        if given.name == "position_ids":
            # Qwen3.5 has three axes, which are equal for text.
            axes = [3] if len(given.shape) == 3 else []
            positions = np.arange(length, length + len(tokens), dtype=kind)
            return np.broadcast_to(positions, [*axes, 1, len(tokens)]).copy()
        raise ValueError(f"Unknown input {given.name} {given.shape}")

    def size_of(self, size):
        if not isinstance(size, str):
            return size
        return 1 if "batch" in size else self.head_size if size == "kv_cache_dim" else 0


def request_messages():
    """Returns the requests: short and long prompts, second turns, and three that run at once."""
    user = lambda content: {"role": "user", "content": content}
    return [
        ("short", None, [user("What is the capital of France? Say it in one word, and say nothing else.")]),
        ("second turn", "short", [user("And of which country is Rome the capital?")]),
        ("words", None, [user(TEXTS[4000:4700])]),
        ("at once 1", None, [user("Name three colors and three animals.")]),
        ("at once 2", None, [user(TEXTS[9000:10000])]),
        ("at once 3", None, [user(TEXTS[20000:21500])]),
        ("long", None, [user(TEXTS[30000:41000])]),
        ("after long", "long", [user("Say it again in fewer words.")]),
    ]


def answer(model, chat, messages):
    """Returns the greedy answer: its tokens as bytes, and the best tokens at each of them."""
    tokens = chat.encode(messages)
    prompt = len(tokens)
    steps = []
    pending, past = tokens, None
    for _ in range(ANSWER_TOKENS):
        logits, past = model.run(pending, past)
        logits = logits.astype(np.float64)
        logits -= logits.max()
        scores = logits - np.log(np.exp(logits).sum())
        best = [int(token) for token in np.argsort(-scores)[:TOP]]
        steps.append([[chat.to_bytes(token), round(float(scores[token]), 5)] for token in best])
        if best[0] == chat.tokenizer.eos_token_id:
            break
        pending = best[:1]
        tokens = [*tokens, *pending]
    return {"promptTokens": prompt, "steps": steps}, chat.decode(tokens[prompt:])


def write_reference(folder, chat, models, about):
    """Writes `reference.json`. `models` has the model to compare with by precision."""
    requests = []
    answers = {precision: [] for precision in models}
    texts = {}
    # A second turn repeats the same answer for every precision: that of the first.
    first = next(iter(models))
    for precision in [first, *(each for each in models if each != first)]:
        for name, before, messages in request_messages():
            if precision == first:
                history = texts[before] if before else []
                asked = [*history, *messages]
                requests.append({"name": name, "messages": asked})
            asked = next(each for each in requests if each["name"] == name)["messages"]
            found, text = answer(models[precision], chat, asked)
            if precision == first:
                texts[name] = [*asked, {"role": "assistant", "content": text}]
            answers[precision].append(found)
    reference = {
        **about,
        "requests": requests,
        "precisions": {
            precision: {"from": models[precision].name, "answers": answers[precision]} for precision in models
        },
    }
    Path(folder, "reference.json").write_text(json.dumps(reference, ensure_ascii=False))
