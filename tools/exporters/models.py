"""Tiny models with random weights: real architectures of transformers, some 15 MB each.

Weights are scaled so that a greedy answer varies and its best token is clearly the best: the
figures of a comparison would mean nothing if every token were likely.
"""

import math
import pydoc_data.topics
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 8192
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# These sizes keep most models at 3 to 4 million parameters, most of them embeddings.
BASE = dict(
    vocab_size=VOCABULARY,
    hidden_size=256,
    intermediate_size=384,
    num_hidden_layers=3,
    num_attention_heads=8,
    num_key_value_heads=2,
    max_position_embeddings=8192,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
    tie_word_embeddings=True,
)


def long_rope(original):
    """Rope scaling of Phi: other factors, and other scales, beyond the original length."""
    return dict(
        original_max_position_embeddings=original,
        rope_scaling=dict(
            type="longrope",
            short_factor=[1.0 + 0.05 * at for at in range(16)],
            long_factor=[1.0 + 0.6 * at for at in range(16)],
        ),
    )


# Name of the configuration class without "Config", and what differs from BASE.
ARCHITECTURES = {
    "llama": ("Llama", {}),
    "llama-untied": ("Llama", dict(tie_word_embeddings=False)),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", dict(head_dim=64, num_attention_heads=4)),
    "gemma2": ("Gemma2", dict(head_dim=64, num_attention_heads=4, query_pre_attn_scalar=64, sliding_window=256)),
    "gemma3": (
        "Gemma3Text",
        dict(
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=64,
            query_pre_attn_scalar=64,
            sliding_window=256,
            layer_types=["sliding_attention", "full_attention"] * 2,
            # Builder 0.18 reads the keys of older versions, which transformers 5 keeps only in here.
            rope_parameters=dict(
                full_attention=dict(rope_type="default", rope_theta=1e6),
                sliding_attention=dict(rope_type="default", rope_theta=1e4),
                rope_type="default",
                rope_theta=1e6,
                rope_local_base_freq=1e4,
            ),
        ),
    ),
    "phi3": ("Phi3", dict(num_key_value_heads=8, tie_word_embeddings=False, **long_rope(4096))),
    "phi3-long": ("Phi3", dict(num_key_value_heads=8, tie_word_embeddings=False, **long_rope(512))),
    "granite": (
        "Granite",
        dict(embedding_multiplier=12.0, attention_multiplier=0.18, residual_multiplier=0.22, logits_scaling=4.0),
    ),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4)),
    "mistral": ("Mistral", dict(sliding_window=256, tie_word_embeddings=False)),
    "olmo2": ("Olmo2", dict(tie_word_embeddings=False)),
    "gpt2": (
        "GPT2",
        dict(
            vocab_size=VOCABULARY,
            n_embd=256,
            n_layer=3,
            n_head=8,
            n_positions=4096,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        ),
    ),
    "lfm2": (
        "Lfm2",
        dict(
            num_hidden_layers=4,
            layer_types=["conv", "full_attention"] * 2,
            conv_L_cache=3,
            conv_bias=False,
            block_auto_adjust_ff_dim=False,
        ),
    ),
    "qwen3.5": (
        "Qwen3_5",
        dict(
            text_config=dict(
                BASE,
                num_hidden_layers=4,
                num_attention_heads=4,
                head_dim=64,
                linear_conv_kernel_dim=4,
                linear_key_head_dim=32,
                linear_value_head_dim=32,
                linear_num_key_heads=4,
                linear_num_value_heads=8,
                layer_types=["linear_attention"] * 3 + ["full_attention"],
                rope_parameters=dict(
                    rope_type="default",
                    rope_theta=1e7,
                    partial_rotary_factor=0.25,
                    mrope_section=[3, 3, 2],
                    mrope_interleaved=True,
                ),
            ),
            vision_config=dict(
                depth=2,
                hidden_size=64,
                intermediate_size=128,
                num_heads=4,
                out_hidden_size=256,
                patch_size=16,
                num_position_embeddings=64,
            ),
            image_token_id=VOCABULARY - 12,
            video_token_id=VOCABULARY - 11,
            vision_start_token_id=VOCABULARY - 10,
            vision_end_token_id=VOCABULARY - 9,
            tie_word_embeddings=True,
        ),
    ),
}

# Classes whose name is not that of the configuration.
CLASSES = {
    "Gemma3Text": "Gemma3ForCausalLM",
    "GPT2": "GPT2LMHeadModel",
    "Qwen3_5": "Qwen3_5ForConditionalGeneration",
}


def make_model(name, folder):
    """Writes the model of that name and a tokenizer, as `save_pretrained` does."""
    kind, changes = ARCHITECTURES[name]
    base = {} if kind in ("GPT2", "Qwen3_5") else BASE
    config = getattr(transformers, f"{kind}Config")(**{**base, **changes})
    torch.manual_seed(1)
    model = getattr(transformers, CLASSES.get(kind, f"{kind}ForCausalLM"))(config).float().eval()
    torch.manual_seed(2)
    scale_weights(model)
    model.tie_weights()
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)


def scale_weights(model):
    """Draws weights with which hidden states keep their size and logits spread by several units."""
    residual = ("o_proj", "out_proj", "down_proj", "c_proj", "output_linear")
    for name, weight in model.named_parameters():
        transposed = model.config.model_type == "gpt2"
        if "embed_tokens" in name or "wte" in name:
            embedded = 0.02 if model.config.model_type.startswith(("gemma", "granite")) else 0.25
            weight.data.normal_(0, embedded)
        elif "wpe" in name:
            weight.data.normal_(0, 0.1)
        elif "A_log" in name:
            weight.data.uniform_(0, 1)
        elif "conv" in name and weight.dim() == 3:
            weight.data.normal_(0, 0.6)
        elif weight.dim() >= 2:
            gain = 4.0 if "lm_head" in name else 2.0 if any(part in name for part in residual) else 1.5
            width = weight.shape[0] if transposed else weight.shape[-1]
            weight.data.normal_(0, gain / math.sqrt(width))
        elif "norm" in name or "ln_" in name:
            weight.data.add_(torch.randn_like(weight) * 0.2)
            # The last norm sets the spread of the logits where the head is the embedding.
            if name.endswith(("model.norm.weight", "embedding_norm.weight")):
                small = {"gemma2": 8, "gemma3_text": 8, "granite": 40}.get(model.config.model_type, 0)
                weight.data.add_(small)
        else:
            weight.data.normal_(0, 0.1)


def make_tokenizer():
    """Trains byte-level BPE on the texts of Python's own help."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
    )


def prompt_text():
    """Returns a long text for prompts."""
    return "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))


def ensure_model(name, root):
    """Returns the folder of the model, made on first use. The version of transformers is part of its name."""
    folder = Path(root) / f"{name}-transformers{transformers.__version__.split('.')[0]}"
    if not (folder / "config.json").exists():
        make_model(name, folder)
    return folder
