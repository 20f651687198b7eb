"""Networks of torch, torchvision, timm and transformers, with random weights."""
import contextlib
import io
import warnings

import torch

EXPORTS = {}
PICTURE = (3, 64, 64)


try:
    import torchvision
except RuntimeError:  # its compiled operators are of another build of torch; none of these networks needs them, but their names must be known
    _names = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _names.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision


def export(make):
    """Registers a maker: it returns a module, {input: function of a count that gives samples}, and whether the dynamo exporter takes it."""
    EXPORTS[make.__name__] = make
    return make


def floats(*shape):
    def draw(count):
        x = torch.randn(count, *shape)
        return (x + x.roll(1, -1) + x.roll(2, -1)) * (0.3 + 0.5 * torch.rand(count, *[1] * len(shape))) + 0.3 * torch.randn(count, *[1] * len(shape))
    return draw


def tokens(length, below):
    return lambda count: torch.randint(0, below, (count, length))


def from_torchvision(name, dynamo=False, **more):
    def make():
        return getattr(torchvision.models, name)(weights=None, **more), {"image": floats(*PICTURE)}, dynamo
    make.__name__ = name + ("_dynamo" if dynamo else "")
    export(make)


def from_timm(name, dynamo=False, size=64, **more):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, num_classes=20, **more), {"image": floats(3, size, size)}, dynamo
    make.__name__ = f"timm_{name}"
    export(make)


class Only(torch.nn.Module):
    """A transformers model of which one output is wanted."""

    def __init__(self, model, wanted="last_hidden_state", takes="input_ids"):
        super().__init__()
        self.model, self.wanted, self.takes = model, wanted, takes

    def forward(self, x):
        return getattr(self.model(**{self.takes: x}), self.wanted)


def from_transformers(name, config, model, wanted="last_hidden_state", takes="input_ids", data=None, dynamo=False, **sizes):
    def make():
        import transformers
        settings = getattr(transformers, config)(**sizes)
        made = getattr(transformers, model)._from_config(settings, attn_implementation="eager")
        return Only(made, wanted, takes), {takes: data or tokens(16, 120)}, dynamo
    make.__name__ = name + ("_dynamo" if dynamo else "")
    export(make)


for _name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "efficientnet_b0", "regnet_y_400mf"):
    from_torchvision(_name, num_classes=20)
from_torchvision("resnet18", dynamo=True, num_classes=20)
from_torchvision("mobilenet_v3_small", dynamo=True, num_classes=20)
for _name, _how in (("ghostnet_050", {}), ("convnext_atto", {}), ("edgenext_xx_small", {}), ("mobilevitv2_050", {}), ("repvgg_a0", {}), ("lcnet_050", {}),
                    ("hardcorenas_a", {}), ("vit_tiny_patch16_224", {"img_size": 64, "depth": 3}), ("deit_tiny_patch16_224", {"img_size": 64, "depth": 3}),
                    ("poolformerv2_s12", {}), ("tinynet_e", {})):
    from_timm(_name, **_how)
from_timm("convnextv2_atto", dynamo=True)

_SMALL = {"vocab_size": 120, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 160}
for _name in ("Bert", "Roberta", "Electra"):
    from_transformers(_name.lower(), f"{_name}Config", f"{_name}Model", **_SMALL)
from_transformers("distilbert", "DistilBertConfig", "DistilBertModel", vocab_size=120, dim=64, n_layers=2, n_heads=4, hidden_dim=160)
from_transformers("gpt2", "GPT2Config", "GPT2LMHeadModel", "logits", dynamo=True, vocab_size=120, n_embd=64, n_layer=2, n_head=4, use_cache=False)
for _name in ("Llama", "Qwen2", "Mistral"):
    from_transformers(_name.lower(), f"{_name}Config", f"{_name}ForCausalLM", "logits", dynamo=True, **_SMALL, num_key_value_heads=2, use_cache=False,
                      tie_word_embeddings=True)
from_transformers("wav2vec2", "Wav2Vec2Config", "Wav2Vec2Model", takes="input_values", data=floats(3200), conv_dim=[32] * 7, hidden_size=64,
                  num_hidden_layers=2, num_attention_heads=4, intermediate_size=160, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
from_transformers("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", "logits", takes="pixel_values", data=floats(3, 64, 64),
                  hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], decoder_hidden_size=32, num_labels=5)


def settled(model, example):
    """Statistics of normalisation as training would have left them, of the samples themselves."""
    for part in model.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.momentum = 1.0
    for part in model.modules():
        part.training = isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
    with torch.no_grad():
        model(*example)
    return model.eval()


def write(name, path, count, seed):
    """Writes the model; its samples, {input: [sample][...]}."""
    torch.manual_seed(1000 * seed + sum(ord(c) * (i + 1) for i, c in enumerate(name)))
    model, inputs, dynamo = EXPORTS[name]()
    data = {k: draw(count) for k, draw in inputs.items()}
    model = settled(model, tuple(data.values()))
    one = tuple(v[:1] for v in data.values())
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"dynamo": True, "external_data": False} if dynamo else {"dynamo": False, "opset_version": 17}
        torch.onnx.export(model, one, str(path), input_names=list(data), **how)
    return {k: v.numpy() for k, v in data.items()}
