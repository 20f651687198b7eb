"""The names of the networks, their kinds and files; models.py makes them."""
from octbench.places import OUT

VISION = ("resnet50", "mobilenetv2")
ENCODERS = ("minilm_l6", "bert_base")
RECURRENT = ("lstm_tagger",)
WORDS = ENCODERS + RECURRENT
ALL = VISION + WORDS
SAMPLES = 100        # of each


def chosen(text):
    """The networks of an option, commas between; all when it is not given."""
    names = text.split(",") if text else list(ALL)
    unknown = sorted(set(names) - set(ALL))
    if unknown:
        raise SystemExit(f"--models: {', '.join(unknown)} is not one of {', '.join(ALL)}")
    return names


def model_file(name):
    return OUT / f"{name}.onnx"


def data_file(name):
    """Pictures as an .npy, which every tool can map; the inputs of the others as an .npz."""
    return OUT / f"{name}.{'npy' if name in VISION else 'npz'}"
