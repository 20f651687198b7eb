"""Models of scikit-learn, fitted to random data, exported by skl2onnx."""
import warnings

import numpy as np
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

EXPORTS = {
    "scikit_mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier((160, 120), max_iter=20, random_state=1)),
    "scikit_regressor": lambda: make_pipeline(MinMaxScaler(), MLPRegressor(hidden_layer_sizes=(150, 150), activation="tanh", max_iter=20, random_state=1)),
    "scikit_linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "scikit_forest": lambda: RandomForestClassifier(12, max_depth=6, random_state=1),
    "scikit_boosting": lambda: GradientBoostingRegressor(n_estimators=20, random_state=1),
    "scikit_svc": lambda: SVC(),
}


def write(name, path, count, seed):
    """Writes the model; its samples, {input: [sample][...]}."""
    rng = np.random.default_rng(1000 * seed + sum(ord(c) * (i + 1) for i, c in enumerate(name)))
    x = (rng.standard_normal((600, 24)) @ rng.standard_normal((24, 24)) * 0.4 + rng.standard_normal(24)).astype(np.float32)
    number = np.tanh(x[:, :8]).sum(1) + np.sin(x[:, 8:16]).sum(1)
    model = EXPORTS[name]()
    kinds = not name.endswith(("regressor", "boosting"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not trained to the end
        model.fit(x, np.digitize(number, np.quantile(number, (0.25, 0.5, 0.75))) if kinds else number)
    how = {id(model): {"zipmap": False}} if kinds else {}
    made = to_onnx(model, x[:1], options=how, target_opset={"": 17, "ai.onnx.ml": 3})
    path.write_bytes(made.SerializeToString())
    return {"X": x[:count]}
