"""What scripts for one provider of ONNX Runtime import."""
