#!/usr/bin/env python3
"""Statements of qconvert verify in the libraries of others: in-toto-attestation takes them, in-toto's envelopes carry them signed, and model-signing signs the folder in
which they lie beside the model. Whatever is changed afterwards is refused there.

    check_attestation.py BUILD [-v]

Needs the Python packages in-toto, in-toto-attestation and model-signing: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages

packages.need("in_toto", "in_toto_attestation", "model_signing", "OpenSSL")
import in_toto_attestation.v1.statement_pb2 as statement_pb2
import model_signing.signing
import model_signing.verifying
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import json_format
from in_toto.models.metadata import ENVELOPE_PAYLOAD_TYPE
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "testdata/images"
STEPS = ["--data", IMAGES / "calib.csv", "--preprocess", "mean=127.5:std=127.5", "--samples", "8"]


def raises(call):
    try:
        call()
    except Exception as e:  # each library has its own
        return type(e).__name__
    return ""


def make(build, folder):
    """A model and its statement."""
    tools = {name: build / "tools" / name / name for name in installed.PROGRAMS}
    source = ROOT / "testdata/demo.onnx"
    installed.must(tools["qconvert"], source, *STEPS, "-o", "m.onnx", "-q", cwd=folder)
    installed.must(tools["qeval"], source, "m.onnx", "--data", IMAGES / "eval.csv", *STEPS[2:], "--no-latency", "-q", "--json", folder.parent / "eval.json", cwd=folder)
    installed.must(tools["qconvert"], "verify", "m.onnx", "--source", source, *STEPS[:2], "--evaluation", folder.parent / "eval.json", "--statement", "m.intoto.json", "-q", cwd=folder)
    return folder / "m.onnx", folder / "m.intoto.json"


def check_statement(c, model, path):
    message = json_format.ParseDict(json.loads(path.read_text()), statement_pb2.Statement())
    taken = Statement.copy_from_pb(message)
    taken.validate()
    c.hold("in-toto-attestation: validates", True)
    back = json_format.MessageToDict(taken.pb)
    c.hold("in-toto-attestation: nothing is lost", back == json.loads(path.read_text(), parse_int=float), back)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    c.hold("in-toto-attestation: the subject is the model", [(s.name, dict(s.digest)) for s in message.subject] == [("m.onnx", {"sha256": digest})], message.subject)
    c.hold("in-toto-attestation: a type that is a URI", ":" in message.predicate_type and message.predicate_type == "urn:octet:predicate:conversion:1")
    message.predicate_type = ""
    c.hold("in-toto-attestation: without a type it is refused", raises(lambda: Statement.copy_from_pb(message).validate()))


def check_envelope(c, path):
    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(payload=path.read_bytes(), payload_type=ENVELOPE_PAYLOAD_TYPE, signatures={})
    envelope.sign(signer)
    carried = Envelope.from_dict(json.loads(json.dumps(envelope.to_dict())))
    carried.verify([signer.public_key], 1)
    c.hold("in-toto: an envelope carries it signed", carried.payload == path.read_bytes())
    carried.payload = carried.payload.replace(b'"verified": true', b'"verified": trua')
    c.hold("in-toto: a changed one is refused", raises(lambda: carried.verify([signer.public_key], 1)))


def check_folder(c, folder, model, path):
    """model-signing signs the folder; key and signature lie outside."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public, signature = (folder.parent / name for name in ("key", "key.pub", "model.sig"))
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    model_signing.signing.Config().use_elliptic_key_signer(private_key=private).sign(folder, signature)

    def verify():
        model_signing.verifying.Config().use_elliptic_key_verifier(public_key=public).verify(folder, signature)
    verify()
    c.hold("model-signing: model and statement are signed", True)
    for file in (model, path):
        was = file.read_bytes()
        file.write_bytes(was[:-2] + bytes([was[-2] ^ 1]) + was[-1:])
        c.hold(f"model-signing: a changed {file.suffix} is refused", raises(verify))
        file.write_bytes(was)
    verify()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-attest-") as name:
        folder = Path(name) / "model"
        folder.mkdir()
        model, path = make(args.build.resolve(), folder)
        check_statement(c, model, path)
        check_envelope(c, path)
        check_folder(c, folder, model, path)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
