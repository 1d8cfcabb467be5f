"""Makes GGUF files of tiny models with random weights for `npm run test:gguf -- --dir DIR`.

    python architectures.py --dir DIR

There is one file for each architecture that inorigin builds from GGUF, and for each way in which its
ropes and windows differ. A small Llama, whose rows are multiples of 256, is there in each type. Beside
each file is what transformers computes with the same weights.
"""

import argparse
import math
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from make import ALL, convert, write_answer, write_reference

VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 96, 64, 8, 4, 2, 96, 64
HEAD_SIZE = HIDDEN // HEADS
WINDOW = 8
# Lengths of prompts and answers: within the short length of a long rope, and beyond it.
LENGTHS = [(4, 16), (9, 12), (30, 20), (40, 20)]
SHORT = 24

BASE = dict(
    vocab_size=VOCABULARY,
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    num_key_value_heads=KV_HEADS,
    intermediate_size=FEED_FORWARD,
    max_position_embeddings=CONTEXT,
    rms_norm_eps=1e-5,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    attn_implementation="eager",
)
LLAMA_3 = dict(
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=32,
)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
LONG = dict(
    type="longrope",
    short_factor=[1 + 0.1 * at for at in range(HEAD_SIZE // 2)],
    long_factor=[1 + 0.7 * at for at in range(HEAD_SIZE // 2)],
)


def sliding(period):
    return ["full_attention" if (at + 1) % period == 0 else "sliding_attention" for at in range(LAYERS)]


# For each file: the class of transformers, and what its configuration has beside BASE.
MODELS = {
    "llama": ("Llama", dict(rope_theta=10_000.0)),
    "llama-3": ("Llama", dict(rope_theta=500.0, rope_scaling=LLAMA_3, tie_word_embeddings=True)),
    "mistral": ("Mistral", dict(sliding_window=None, rope_theta=1_000_000.0)),
    "qwen2": ("Qwen2", dict(rope_theta=1_000_000.0, tie_word_embeddings=True)),
    "qwen3": ("Qwen3", dict(head_dim=32, rope_theta=1_000_000.0, tie_word_embeddings=True)),
    "qwen3-yarn": ("Qwen3", dict(head_dim=32, rope_theta=1_000.0, rope_scaling=YARN)),
    "gemma3": (
        "Gemma3",
        dict(
            head_dim=32,
            query_pre_attn_scalar=32,
            sliding_window=WINDOW,
            rope_theta=1_000_000.0,
            rope_local_base_freq=10_000.0,
            layer_types=sliding(6),
            tie_word_embeddings=True,
        ),
    ),
    "phi3": ("Phi3", dict(sliding_window=None, original_max_position_embeddings=CONTEXT)),
    "phi3-long": ("Phi3", dict(sliding_window=None, original_max_position_embeddings=SHORT, rope_scaling=LONG)),
    "lfm2": (
        "Lfm2",
        dict(
            norm_eps=1e-5,
            block_auto_adjust_ff_dim=False,
            conv_bias=False,
            conv_L_cache=3,
            layer_types=["full_attention" if at % 3 == 2 else "conv" for at in range(LAYERS)],
            tie_word_embeddings=True,
        ),
    ),
    "smollm3": ("SmolLM3", dict(no_rope_layer_interval=4, use_sliding_window=False, tie_word_embeddings=True)),
    "granite": (
        "Granite",
        dict(
            embedding_multiplier=12.0,
            residual_multiplier=0.22,
            attention_multiplier=0.1,
            logits_scaling=8.0,
            tie_word_embeddings=True,
        ),
    ),
    "olmo2": ("Olmo2", dict(rope_theta=500_000.0)),
    "olmo3": (
        "Olmo3",
        dict(rope_theta=1_000.0, sliding_window=WINDOW, layer_types=sliding(4), rope_scaling=YARN),
    ),
}

# The model that is written in each type.
TYPED = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=2, rope_theta=10_000.0)

# Architectures of files whose names are others.
NAMES = {"llama-3": "llama", "mistral": "llama", "qwen3-yarn": "qwen3", "phi3-long": "phi3", "olmo3": "olmo2"}
# In these, the halves of each head alternate.
INTERLEAVED = {"llama", "smollm3", "granite"}
NORMS_AFTER = {"gemma3", "olmo2"}

TENSORS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.out_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down",
    "input_layernorm": "attn_norm",
    "operator_norm": "attn_norm",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "conv.conv": "shortconv.conv",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "ffn_norm": "ffn_norm",
}
WHOLE = {
    "lm_head": "output",
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "embedding_norm": "token_embd_norm",
}


def name_of(parameter, architecture):
    stem, suffix = parameter.removeprefix("model.").rsplit(".", 1)
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{suffix}"
    _, layer, part = stem.split(".", 2)
    if part == "post_attention_layernorm":
        return f"blk.{layer}.{'post_attention_norm' if architecture in NORMS_AFTER else 'ffn_norm'}.{suffix}"
    return f"blk.{layer}.{TENSORS[part]}.{suffix}"


@torch.no_grad()
def create(kind, changes):
    """Returns a model with random weights, and its configuration."""
    given = {**BASE, "tie_word_embeddings": False, **changes}
    if kind == "Lfm2":
        del given["rms_norm_eps"]
    config = getattr(transformers, f"{kind}TextConfig" if kind == "Gemma3" else f"{kind}Config")(**given)
    torch.manual_seed(3)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).float().eval()
    for parameter, values in model.named_parameters():
        if "norm" in parameter:
            values.copy_(torch.randn_like(values) * 0.2 + (0 if kind == "Gemma3" else 1))
        elif values.dim() == 1:
            values.copy_(torch.randn_like(values) * 0.3)
        else:
            values.copy_(torch.randn_like(values) * (0.5 if "embed" in parameter else 0.15))
    model.tie_weights()
    return model, config


def add_metadata(writer, name, architecture, model, config):
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_rope_freq_base(config.rope_theta)
    if architecture == "lfm2":
        writer.add_head_count_kv([KV_HEADS if kind == "full_attention" else 0 for kind in config.layer_types])
        writer.add_shortconv_l_cache(config.conv_L_cache)
    else:
        writer.add_head_count_kv(KV_HEADS)
    usual = config.hidden_size // HEADS
    size = getattr(config, "head_dim", None) or usual
    if size != usual:
        writer.add_key_length(size)
        writer.add_value_length(size)
    if architecture == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if architecture in NORMS_AFTER and getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    if name == "olmo3":
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    scaling = getattr(config, "rope_scaling", None) or {}
    if scaling.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    if name == "llama-3":
        usual = 1 / config.rope_theta ** (torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE)
        writer.add_tensor("rope_freqs.weight", (usual / model.model.rotary_emb.inv_freq).numpy())
    if name == "phi3-long":
        factor = math.sqrt(1 + math.log(CONTEXT / SHORT) / math.log(SHORT))
        writer.add_rope_scaling_orig_ctx_len(SHORT)
        writer.add_rope_scaling_attn_factors(factor)
        for kind in ("short", "long"):
            factors = np.array(scaling[f"{kind}_factor"], np.float32)
            writer.add_tensor(f"rope_factors_{kind}.weight", factors)


def interleave(rows, heads):
    halves = rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write(path, name, model, config, kind="F32"):
    """Writes the file. Its matrices have a type, whose values the model gets, too."""
    architecture = NAMES.get(name, name)
    writer = gguf.GGUFWriter(path, architecture)
    add_metadata(writer, name, architecture, model, config)
    for parameter, values in model.state_dict().items():
        if parameter == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored, numbers = name_of(parameter, architecture), values.numpy()
        if architecture == "gemma3" and "norm" in stored:
            numbers = numbers + 1
        if stored.endswith("shortconv.conv.weight"):
            numbers = numbers.reshape(HIDDEN, -1)
        if architecture in INTERLEAVED and (".attn_q." in stored or ".attn_k." in stored):
            numbers = interleave(numbers, HEADS if ".attn_q." in stored else KV_HEADS)
        numbers = np.ascontiguousarray(numbers, np.float32)
        if kind == "F32" or numbers.ndim == 1:
            writer.add_tensor(stored, numbers)
            continue
        data, raw = convert(numbers, kind)
        writer.add_tensor(stored, data, raw_dtype=raw)
        # A row has the same values wherever it is.
        data, raw = convert(values.numpy(), kind)
        values.copy_(torch.from_numpy(gguf.quants.dequantize(data, raw).astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="folder to write to")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    for name, (kind, changes) in MODELS.items():
        model, config = create(kind, changes)
        path = given.dir / f"{name}.gguf"
        write(path, name, model, config)
        write_answers(path, model, "F32")
    for kind in ALL:
        model, config = create("Llama", TYPED)
        path = given.dir / f"type-{kind}.gguf"
        write(path, "llama", model, config, kind)
        write_answers(path, model, kind)


def write_answers(path, model, kind):
    # The answers do not end before their length.
    model.generation_config.eos_token_id = -1
    random = np.random.default_rng(5)
    prompts = [(random.integers(3, VOCABULARY, length).tolist(), count) for length, count in LENGTHS]
    answers = [(prompt, write_answer(model, prompt, count)) for prompt, count in prompts]
    write_reference(path, model, answers, {kind: sum(each.dim() > 1 for each in model.parameters())})


if __name__ == "__main__":
    main()
