"""Sizes, special tokens and places, shared by every step of the recipe."""
import os
from dataclasses import dataclass
from pathlib import Path

# Where the model's files are written; where checkpoints and shards are kept.
MODEL_DIR = Path(os.environ.get('GUIDE_OUT', Path(__file__).resolve().parent.parent))
WORK_DIR = Path(os.environ.get('GUIDE_WORK', Path.home() / '.cache' / 'inorigin-guide'))

VOCAB = 2048
SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
VISIBLE = ['<think>', '</think>', '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>']
RESERVED = [f'<|reserved_{i}|>' for i in range(7)]
ADDED = SPECIAL + VISIBLE + RESERVED


@dataclass
class Shape:
    """A Llama-style decoder; the names are those of a Hugging Face config.json."""
    hidden_size: int = 192
    num_hidden_layers: int = 6
    num_attention_heads: int = 6
    num_key_value_heads: int = 3
    head_dim: int = 32
    intermediate_size: int = 576
    vocab_size: int = VOCAB
    max_position_embeddings: int = 2048
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5
