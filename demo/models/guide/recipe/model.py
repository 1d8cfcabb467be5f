"""The decoder: RMSNorm, rotary positions (rotate-half), grouped-query attention, SwiGLU, tied embeddings."""
import torch
import torch.nn.functional as F
from torch import nn

from settings import Shape


def rotary(shape: Shape, length: int):
    """Cosine and sine tables [length, head_dim / 2]."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float64) / shape.head_dim
    angle = torch.arange(length, dtype=torch.float64)[:, None] / (shape.rope_theta ** half)[None]
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attend(q, k, v):
    """Causal attention; written out, which for short chats on a CPU is twice as fast as the fused kernel."""
    if q.is_cuda and q.shape[2] == k.shape[2]:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    batch, heads, length, dim = q.shape
    total = k.shape[2]
    grouped = (q * dim ** -0.5).reshape(batch, k.shape[1], -1, dim)
    scores = (grouped @ k.transpose(2, 3)).view(batch, heads, length, total)
    later = torch.full((length, total), float('-inf'), dtype=scores.dtype, device=scores.device).triu(total - length + 1)
    with torch.autocast(q.device.type, enabled=False):
        weights = (scores + later).softmax(-1)
    return (weights.view(batch, k.shape[1], -1, total) @ v).view(batch, heads, length, dim)


class Attention(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.hidden_size, s.num_attention_heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden_size, s.num_key_value_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden_size, s.num_key_value_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.num_attention_heads * s.head_dim, s.hidden_size, bias=False)

    def forward(self, x, cos, sin, past=None):
        s, (batch, length, _) = self.s, x.shape
        heads = lambda t, n: t.view(batch, length, n, s.head_dim).transpose(1, 2)
        q = rotate(heads(self.q_proj(x), s.num_attention_heads), cos, sin)
        k = rotate(heads(self.k_proj(x), s.num_key_value_heads), cos, sin)
        v = heads(self.v_proj(x), s.num_key_value_heads)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        o = attend(q, k, v)
        return self.o_proj(o.transpose(1, 2).reshape(batch, length, -1)), (k, v)


class Layer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)
        self.self_attn = Attention(s)
        self.post_attention_layernorm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)
        self.gate_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.up_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.down_proj = nn.Linear(s.intermediate_size, s.hidden_size, bias=False)

    def forward(self, x, cos, sin, past=None):
        a, present = self.self_attn(self.input_layernorm(x), cos, sin, past)
        x = x + a
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h)), present


class Guide(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.embed_tokens = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.num_hidden_layers))
        self.norm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)
        cos, sin = rotary(s, s.max_position_embeddings)
        self.register_buffer('cos', cos, persistent=False)
        self.register_buffer('sin', sin, persistent=False)
        self.apply(self.start)
        for layer in self.layers:
            for last in (layer.self_attn.o_proj, layer.down_proj):
                nn.init.normal_(last.weight, std=0.02 / (2 * s.num_hidden_layers) ** 0.5)

    @staticmethod
    def start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def hidden(self, ids, past=None):
        """Final hidden states, and the keys and values of every layer."""
        return self.run(self.embed_tokens(ids), past)

    def run(self, x, past=None):
        """Returns the same from embeddings [batch, length, hidden_size]."""
        begin = 0 if past is None else past[0][0].shape[2]
        cos, sin = self.cos[begin:begin + x.shape[1]], self.sin[begin:begin + x.shape[1]]
        present = []
        for i, layer in enumerate(self.layers):
            x, kv = layer(x, cos, sin, past[i] if past else None)
            present.append(kv)
        return self.norm(x), present

    def logits(self, hidden):
        return F.linear(hidden, self.embed_tokens.weight)


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def as_shipped(model: nn.Module) -> nn.Module:
    """Round every weight to half precision, in place: what the ONNX file stores."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.half().float())
    return model
