"""What the layouts of `layouts.py` are made of: sizes, layers, random weights and what they stand for."""

import numpy as np

from tiny import tokenizer

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, CONTEXT = 32, 4, 2, 16, 32, 512
TAPS, MEMORY, EXTRA, BLOCK = 3, 16, 8, 32
EPSILON, DECAY = 1e-5, 0.9
# For each pair of a head: whether it turns with the frame (0), the row (1) or the column (2) of a
# token. Newer models of Qwen interleave them.
TURNS = {"axes": (0, 0, 1, 1, 1, 2, 2, 2), "interleaved": (0, 1, 2, 0, 1, 2, 0, 0)}

FILES = tokenizer()
VOCAB = len(FILES["model"]["vocab"]) + len(FILES["added_tokens"])

LAYOUTS = {
    "plain": {"layers": ["plain", "plain"], "config": {"model_type": "llama"}},
    "conv": {
        "layers": ["conv", "grouped"],
        "config": {
            "model_type": "lfm2",
            "conv_L_cache": TAPS,
            "layer_types": ["conv", "full_attention"],
        },
    },
    "recurrent": {"layers": ["recurrent", "plain"], "config": {"model_type": "qwen3_5_text"}},
    "split": {"layers": ["grouped", "grouped"], "config": {"model_type": "gemma3n_text"}},
    "branch": {"layers": ["branch", "branch"], "config": {"model_type": "bloom"}},
    "q4": {
        "layers": ["grouped", "grouped"],
        "config": {
            "model_type": "llama",
            "transformers.js_config": {"use_external_data_format": {"model_q4.onnx": 1}},
        },
    },
    "fp16": {"layers": ["grouped", "grouped"], "config": {"model_type": "llama"}},
    "q4f16": {"layers": ["grouped", "grouped"], "config": {"model_type": "llama"}},
    "branch16": {"layers": ["branch", "branch"], "config": {"model_type": "bloom"}},
}
HALVES = ("fp16", "q4f16", "branch16")
QUARTERS = ("q4", "q4f16")
BRANCHES = ("branch", "branch16")


def weights(name, seed):
    random = np.random.default_rng(seed)

    def draw(*shape, scale=0.3):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    made = {"embed": draw(VOCAB, HIDDEN, scale=1.0), "norm": 1 + draw(HIDDEN, scale=0.1)}
    made["head"] = draw(HIDDEN, VOCAB, scale=0.6)
    # The end token is out of reach, so that every continuation has the length asked for.
    made["head"][:, [token["id"] for token in FILES["added_tokens"]]] *= 0.01
    for layer, kind in enumerate(LAYOUTS[name]["layers"]):
        wide = MEMORY if kind == "recurrent" else HEADS * HEAD
        heads = {"recurrent": MEMORY, "branch": HEADS * HEAD}.get(kind, KV_HEADS * HEAD)
        if kind == "conv":
            made |= {
                f"in{layer}": draw(HIDDEN, 3 * HIDDEN),
                f"taps{layer}": draw(HIDDEN, 1, TAPS, scale=0.8),
                f"o{layer}": draw(HIDDEN, HIDDEN),
            }
        else:
            made |= {f"q{layer}": draw(HIDDEN, wide), f"o{layer}": draw(wide, HIDDEN)}
            made |= {f"k{layer}": draw(HIDDEN, heads), f"v{layer}": draw(HIDDEN, heads)}
        made |= {
            f"gate{layer}": draw(HIDDEN, FFN),
            f"up{layer}": draw(HIDDEN, FFN),
            f"down{layer}": draw(FFN, HIDDEN),
            f"before{layer}": 1 + draw(HIDDEN, scale=0.1),
            f"between{layer}": 1 + draw(HIDDEN, scale=0.1),
        }
        if name == "split":
            made[f"mix{layer}"] = draw(EXTRA, HIDDEN)
    if name == "split":
        made["extra"] = draw(VOCAB, 2 * EXTRA, scale=1.0)
    if name in BRANCHES:
        made["places"] = draw(CONTEXT + 1, HIDDEN, scale=0.5)
    else:
        angles = np.arange(CONTEXT)[:, None] / 10_000 ** (np.arange(0, HEAD, 2) / HEAD)[None]
        made |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    if name in HALVES:
        made = {key: array.astype(np.float16) for key, array in made.items()}
    return made


def quantize(array):
    """Blocks of 4 bits along the first dimension: packed, scales, and what they stand for."""
    count, rows = array.shape[1], array.T.reshape(array.shape[1], -1, BLOCK).astype(np.float32)
    scales = (np.abs(rows).max(-1, keepdims=True) / 7).astype(array.dtype)
    whole = np.clip(np.round(rows / scales), -8, 7)
    packed = (whole + 8).astype(np.uint8)
    packed = packed[..., 0::2] | packed[..., 1::2] << 4
    restored = (whole * scales).reshape(count, -1).T.astype(np.float32)
    return packed, scales.reshape(-1), restored


def meaning(name, made):
    """The numbers that the weights stand for."""
    if name in QUARTERS:
        kept = {"embed", "cos", "sin"}
        made = {
            key: array if array.ndim < 2 or key in kept else quantize(array)[2]
            for key, array in made.items()
        }
    return {key: array.astype(np.float64) for key, array in made.items()}
