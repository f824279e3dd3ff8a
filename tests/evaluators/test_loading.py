"""`load`: modules, files, checks against the game, and errors that say what to do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from network_cases import GAMES, NamedNet, by_hand, named_rows, positions, small_net, torch

from windrow import CheckpointError, ConfigError, EvaluatorError, MissingExtraError, Search, SearchConfig, make_game
from windrow.evaluators import Evaluator, load
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.backends.export import export_onnx
from windrow.evaluators.backends.source import Input, game_inputs
from windrow.nets import ResNet, fold
from windrow.train import save_checkpoint

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

GAME = GAMES["connect4"]
ONNX_BACKENDS = [
    name
    for name, backend in BACKENDS.items()
    if backend.takes_onnx and backend.device == "cpu" and backend.missing() is None
]


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small network for Connect-4 as a file."""
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    path.write_bytes(export_onnx(small_net(), game_inputs(GAME.observation), label="the test's network"))
    return path


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one checkpoint, of a network with batch norm that has seen some positions."""
    pytest.importorskip("safetensors")
    folder = tmp_path_factory.mktemp("run")
    save_checkpoint(folder, 3, game=GAME, net=normed_net(), learner_state={}, counters={}, config={}, metrics={})
    return folder


def normed_net() -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        net = ResNet.for_game(GAME, channels=8, blocks=1)
        for _ in range(3):
            net(torch.from_numpy(positions().observations))  # in training mode: the norms take their statistics
    return net.eval()


# --- Files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ONNX_BACKENDS)
def test_an_onnx_file(backend: str, onnx_file: Path) -> None:
    evaluator = load(onnx_file, game=GAME, backend=backend)
    rows = positions()
    tolerance = 1e-4 if evaluator.precision == "f32" else 0.05
    want = by_hand(small_net(), rows.observations)
    np.testing.assert_allclose(evaluator.evaluate(rows.observations)[0], want[0], atol=tolerance)
    evaluator.update(small_net(seed=8))
    want = by_hand(small_net(seed=8), rows.observations)
    np.testing.assert_allclose(evaluator.evaluate(rows.observations)[0], want[0], atol=tolerance)
    assert Search(GAME, evaluator, SearchConfig(num_simulations=30)).run(GAME.initial_state()).visits.sum() == 30


@pytest.mark.parametrize("part", ["", "checkpoints/000003", "checkpoints/000003/model.safetensors"])
def test_a_checkpoint(run_folder: Path, part: str) -> None:
    """It knows its game, and gives what the network gave."""
    evaluator = load(run_folder / part, backend="torch")
    rows = positions()
    with torch.inference_mode():
        logits, values = normed_net()(torch.from_numpy(rows.observations))
    answer = evaluator.evaluate(rows.observations)
    np.testing.assert_allclose(answer[0], logits.numpy(), atol=1e-5)
    np.testing.assert_allclose(answer[1].reshape(-1), values.numpy().reshape(-1), atol=1e-5)
    assert Search(GAME, evaluator, SearchConfig(num_simulations=5)).run(GAME.initial_state()).visits.sum() == 5
    assert str(run_folder) in repr(evaluator)
    evaluator.update(fold(normed_net()))
    assert evaluator.version == 1


def test_a_checkpoint_of_another_game(run_folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"trained for connect4.*, not for tictactoe"):
        load(run_folder, game=make_game("tictactoe"))


def test_a_folder_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        load(tmp_path, game=GAME)
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    with pytest.raises(CheckpointError):
        load(tmp_path / "model.safetensors", game=GAME)


def test_load_is_a_method_too(onnx_file: Path) -> None:
    rows = positions()
    want = load(onnx_file, game=GAME, backend="onnxruntime").evaluate(rows.observations)
    evaluator = Evaluator.load(onnx_file, game=GAME, backend="onnxruntime")
    assert isinstance(evaluator, Evaluator) and evaluator.backend == "onnxruntime"
    np.testing.assert_array_equal(evaluator.evaluate(rows.observations)[0], want[0])
    assert Evaluator.load(small_net(), game=GAME, backend="torch").backend == "torch"
    with pytest.raises(EvaluatorError, match="there is no file"):
        Evaluator.load("nowhere.onnx", game=GAME)


def test_an_onnx_file_says_what_it_takes(onnx_file: Path) -> None:
    """Without a game: the file knows its shapes, and the search checks them."""
    evaluator = load(str(onnx_file), backend="onnxruntime")
    assert Search(GAME, evaluator, SearchConfig(num_simulations=5)).run(GAME.initial_state()).visits.sum() == 5
    with pytest.raises(EvaluatorError, match=r"takes observations \[K, 2, 6, 7\], but tictactoe.* \[K, 2, 3, 3\]"):
        Search(make_game("tictactoe"), evaluator)


def test_an_onnx_file_with_named_inputs(tmp_path: Path) -> None:
    path = tmp_path / "named.onnx"
    inputs = (Input("board", (2, 5, 4)), Input("flat", (3,)))
    path.write_bytes(export_onnx(NamedNet().eval(), inputs, label="the test's network"))
    rows = named_rows(9)
    for backend in ("onnxruntime", "openvino"):
        if BACKENDS[backend].missing() is None:
            got = load(path, backend=backend).evaluate(rows)
            np.testing.assert_allclose(got[0], by_hand(NamedNet(), rows)[0], atol=1e-5)
    with pytest.raises(EvaluatorError, match=r"takes board \[K, 2, 5, 4\] and flat \[K, 3\], but the game gives"):
        load(path, game=GAME)


def test_weights_beside_the_file(tmp_path: Path) -> None:
    """PyTorch writes large weights into a second file."""
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "net.onnx"
    model = onnx.load_from_string(export_onnx(small_net(), game_inputs(GAME.observation), label=""))
    onnx.save(model, path, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    assert (tmp_path / "net.onnx.data").is_file()
    rows = positions()
    for backend in ONNX_BACKENDS:
        evaluator = load(path, game=GAME, backend=backend)
        evaluator.update(small_net(seed=8))
        np.testing.assert_allclose(
            evaluator.evaluate(rows.observations)[0], by_hand(small_net(seed=8), rows.observations)[0], atol=0.05
        )


def test_an_exported_program(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    example = (torch.zeros(2, 2, 6, 7),)
    batch = {0: torch.export.Dim("batch")}
    torch.export.save(torch.export.export(small_net(), example, dynamic_shapes=(batch,)), path)
    want = by_hand(small_net(), positions().observations)
    for backend in ("torch", "onnxruntime"):
        for game in (GAME, None):
            got = load(path, game=game, backend=backend, trust_code=True).evaluate(positions().observations)
            np.testing.assert_allclose(got[0], want[0], atol=1e-4)
    with pytest.raises(EvaluatorError, match=r"net\.pt2 takes .*\[K, 2, 6, 7\], but the game gives .*\[K, 2, 3, 3\]"):
        load(path, game=make_game("tictactoe"), trust_code=True)


def test_a_file_that_can_hold_code_is_not_opened_unasked(tmp_path: Path) -> None:
    """A zip file with a pickle in it, as torch.export writes them, but with another program in the pickle."""
    canary, path = tmp_path / "canary", tmp_path / "net.pt2"

    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return canary.touch, ()

    torch.export.save(torch.export.export(small_net(), (torch.zeros(2, 2, 6, 7),)), path)
    hostile = tmp_path / "hostile.pt2"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(hostile, "w") as changed:
        for name in whole.namelist():
            data = whole.read(name)
            if name.endswith(".pt"):
                buffer = io.BytesIO()
                torch.save(Hostile(), buffer)
                data = buffer.getvalue()
            changed.writestr(name, data)
    with pytest.raises(EvaluatorError, match=r"runs whatever code is in them.*trust_code=True"):
        load(hostile, game=GAME)
    assert not canary.exists()


# --- No torch ----------------------------------------------------------------------------------------------------

WITHOUT = """
import sys
import zipfile

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError("not installed in this test", name=name)

sys.meta_path.insert(0, Absent())
"""


def run_without(absent: list[str], code: str, cache: Path) -> str:
    """What a program prints in an installation that lacks some packages."""
    program = WITHOUT.format(absent=absent) + code
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_onnx_needs_no_torch(onnx_file: Path, tmp_path: Path) -> None:
    code = f"""
import windrow
from windrow.evaluators import Evaluator, load
game = windrow.make_game("connect4")
for backend in ("auto", "onnxruntime"):
    evaluator = load({str(onnx_file)!r}, game=game, backend=backend, candidates=["onnxruntime", "openvino", "torch"])
    search = windrow.Search(game, evaluator, windrow.SearchConfig(num_simulations=20))
    print(search.run(game.initial_state()).visits.sum())
print("torch" in sys.modules, evaluator.backend)
"""
    assert run_without(["torch"], code, tmp_path).split() == ["20", "20", "False", "onnxruntime"]


@pytest.mark.parametrize(
    ("absent", "call", "message"),
    [
        (
            ["openvino"],
            'load(FILE, backend="openvino")',
            'openvino not installed: pip install "windrow-mcts[openvino]"',
        ),
        (["nncf"], 'load(FILE, backend="openvino-int8")', 'nncf not installed: pip install "windrow-mcts[int8]"'),
        (["onnxruntime"], 'load(FILE, backend="onnxruntime")', 'pip install "windrow-mcts[onnx]"'),
        (["torch"], 'load(FILE, backend="torch")', 'torch not installed: pip install "windrow-mcts[torch]"'),
        (["onnxruntime", "openvino"], "load(FILE)", 'pip install "windrow-mcts[onnx]"'),
        (["onnx"], 'load(FILE, backend="onnxruntime").update({})', 'onnx: pip install "windrow-mcts[onnx]"'),
        (["jax"], "windrow.evaluators.from_jax", 'from_jax needs JAX: pip install "windrow-mcts[jax]"'),
        (["torch"], "windrow.evaluators.TorchEvaluator", 'needs PyTorch: pip install "windrow-mcts[torch]"'),
    ],
)
def test_what_is_not_installed_is_named(
    absent: list[str], call: str, message: str, onnx_file: Path, tmp_path: Path
) -> None:
    code = f"""
import windrow
from windrow.evaluators import Evaluator, load
FILE = {str(onnx_file)!r}
try:
    {call}
except windrow.MissingExtraError as error:
    print(error)
"""
    assert message in run_without(absent, code, tmp_path)


def test_exporting_needs_the_exporter(tmp_path: Path) -> None:
    code = """
import torch, windrow
from windrow.evaluators import Evaluator, load
try:
    load(torch.nn.Linear(3, 3), game=windrow.make_game("connect4"), backend="onnxruntime")
except windrow.MissingExtraError as error:
    print(error)
"""
    printed = run_without(["onnxscript"], code, tmp_path)
    assert 'exporting a module needs onnxscript: pip install "windrow-mcts[onnx]"' in printed


# --- Errors ------------------------------------------------------------------------------------------------------


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match=r"no backend 'openvno'\. Did you mean 'openvino'\?"):
        load(small_net(), game=GAME, backend="openvno")
    with pytest.raises(ConfigError, match="precision cannot be 'fp16'"):
        load(small_net(), game=GAME, precision="fp16")
    with pytest.raises(ConfigError, match="'onnxruntime' computes in f32, not in precision='bf16'"):
        load(small_net(), game=GAME, backend="onnxruntime", precision="bf16")
    with pytest.raises(ConfigError, match="'openvino-bf16' computes in bf16, not in precision='int8'"):
        load(small_net(), game=GAME, backend="openvino-bf16", precision="int8")
    with pytest.raises(ConfigError, match=r"device must be .*not 'tpu'"):
        load(small_net(), game=GAME, device="tpu")
    with pytest.raises(ConfigError, match="num_threads must be at least 1"):
        load(small_net(), game=GAME, num_threads=0)
    with pytest.raises(ConfigError, match="batch must be at least 1"):
        load(small_net(), game=GAME, batch=0)


def test_precision_chooses_within_a_family() -> None:
    assert load(small_net(), game=GAME, backend="torch", precision="bf16").backend == "torch-bf16"
    assert load(small_net(), game=GAME, backend="torch", precision="f32").backend == "torch"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("backend", ["cuda", "cuda-bf16", "cuda-compile"])
def test_a_gpu_that_is_not_there(backend: str) -> None:
    with pytest.raises(EvaluatorError, match=f"'{backend}' cannot be used here: PyTorch finds no GPU"):
        load(small_net(), game=GAME, backend=backend)


def test_a_provider_that_is_not_there() -> None:
    if BACKENDS["tensorrt"].missing() is None:
        pytest.skip("there is TensorRT")
    with pytest.raises(EvaluatorError, match="no TensorrtExecutionProvider: install onnxruntime-gpu"):
        load(small_net(), game=GAME, backend="tensorrt")


class Looking(torch.nn.Module):
    """Its path depends on values, so it cannot be exported."""

    def forward(self, x: Any) -> Any:
        sign = 1.0 if x.sum() > 0 else -1.0
        return sign * x.flatten(1)[:, :7], torch.tanh(x.sum(dim=(1, 2, 3)))


def test_a_module_that_cannot_be_exported() -> None:
    with pytest.raises(EvaluatorError, match=r"Looking cannot be exported to ONNX \(.*\).*such as \"torch\""):
        load(Looking(), game=GAME, backend="onnxruntime")
    assert load(Looking(), game=GAME, backend="torch").evaluate(positions().observations)[0].shape == (200, 7)


def test_a_module_that_mixes_rows() -> None:
    """It runs on the example of the export, but not on other batches."""

    class Fixed(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.reshape(2, -1)[:, :7], x.reshape(2, -1)[:, 0]

    for backend in ("torch", "onnxruntime"):
        with pytest.raises(EvaluatorError, match=r"answers 3 positions with shapes \(2, 7\) and \(2,\)"):
            load(Fixed(), game=GAME, backend=backend)


@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: (x.sum(dim=(1, 2, 3)), x.flatten(1)[:, :7]), "in this order"),
        (lambda x: (x.flatten(1)[:, :7], x[:, :, :, 0]), "in this order"),
        (lambda x: (x.flatten(1)[:, :9], x.flatten(1)[:, 0]), "logits for 9 actions, but connect4.* has 7"),
        (lambda x: (x.flatten(1), x.flatten(1), x.flatten(1)), "two tensors"),
    ],
)
def test_wrong_answers_are_found_when_loading(answer: Any, message: str, backend: str) -> None:
    class Wrong(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return answer(x)

    with pytest.raises(EvaluatorError, match=message):
        load(Wrong(), game=GAME, backend=backend)


def test_a_module_for_another_game() -> None:
    with pytest.raises(EvaluatorError, match=r"SmallNet fails on observations \[K, 2, 3, 3\]"):
        load(small_net(), game=make_game("tictactoe"), backend="torch")


def test_a_module_without_a_game() -> None:
    with pytest.raises(EvaluatorError, match="does not declare its inputs: pass game="):
        load(small_net())


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"there is no file .*nowhere\.onnx"):
        load(tmp_path / "nowhere.onnx", game=GAME)
    with pytest.raises(EvaluatorError, match=r"not dict: .*from_function or from_jax"):
        load({"policy": 1}, game=GAME)
    weights = tmp_path / "weights.pt"
    torch.save(small_net().state_dict(), weights)
    with pytest.raises(EvaluatorError, match="load_state_dict, and load the module"):
        load(weights, game=GAME)
    for name in ("rubbish.onnx", "rubbish.pt2"):
        rubbish = tmp_path / name
        rubbish.write_bytes(b"rubbish")
        with pytest.raises(EvaluatorError, match="rubbish"):
            load(rubbish, game=GAME, trust_code=True)


def test_an_onnx_file_with_a_fixed_batch(tmp_path: Path) -> None:
    path = tmp_path / "fixed.onnx"
    program = torch.export.export(small_net(), (torch.zeros(4, 2, 6, 7),))
    with pytest.warns(FutureWarning):
        torch.onnx.export(program, dynamo=True, verbose=False, optimize=False).save(str(path))
    with pytest.raises(EvaluatorError, match=r"fixed shape \[4, 2, 6, 7\]: export it with a dynamic batch"):
        load(path, game=GAME)


def test_a_torch_backend_for_an_onnx_file(onnx_file: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"'torch' runs PyTorch modules, but .* is an ONNX file"):
        load(onnx_file, game=GAME, backend="torch")


def test_an_optimized_file_has_no_names_for_new_weights(tmp_path: Path, onnx_file: Path) -> None:
    """Folded weights cannot be replaced by name: better an error than half an update."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(onnx_file)
    for tensor in model.graph.initializer:
        if tensor.name == "norm.weight":
            tensor.name = "folded_1"
    for node in model.graph.node:
        node.input[:] = ["folded_1" if name == "norm.weight" else name for name in node.input]
    path = tmp_path / "folded.onnx"
    onnx.save(model, path)
    for backend in ("onnxruntime", "openvino"):
        if BACKENDS[backend].missing() is None:
            evaluator = load(path, game=GAME, backend=backend)
            with pytest.raises(EvaluatorError, match=r"missing: folded_1.*optimize=False"):
                evaluator.update(small_net())


def test_quantization_needs_positions(onnx_file: Path) -> None:
    if BACKENDS["openvino-int8"].missing() is not None:
        pytest.skip("NNCF is not installed")
    with pytest.raises(EvaluatorError, match=r"positions for calibration: pass game="):
        load(onnx_file, backend="openvino-int8")


def test_a_missing_extra_is_an_import_error() -> None:
    assert issubclass(MissingExtraError, ImportError)
