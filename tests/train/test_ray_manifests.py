"""The cluster files in examples/: they say what Ray and windrow need, and their commands are windrow's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from windrow import make_game
from windrow.engines import Ray
from windrow.train import config_for

yaml = pytest.importorskip("yaml")

FOLDER = Path(__file__).parent.parent.parent / "examples" / "cluster"


def read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def command_settings(command: str) -> dict[str, Any]:
    """The settings that a `windrow train` command gives, as `TrainConfig` takes them."""
    words = shlex.split(command)
    assert words[:3] == ["windrow", "train", "connect4"]
    names = {
        "--engine": "search.engine",
        "--address": "search.engine.address",
        "--workers": "search.engine.num_workers",
        "--actors": "search.engine.num_actors",
    }
    settings: dict[str, Any] = {}
    for option, value in zip(words[3::2], words[4::2], strict=True):
        if option == "--set":
            key, _, value = value.partition("=")
            settings[key] = float(value) if "." in value else int(value)
        elif option in names:
            settings[names[option]] = int(value) if value.isdigit() else value
        else:
            assert option in ("--time", "--run")
    return settings


def check_command(command: str, *, cpus: float, gpus: float) -> None:
    """The command is one that windrow takes, and the cluster has room for what it asks for."""
    config = config_for(make_game("connect4"), command_settings(command))
    ray = config.search.options_for(Ray)
    assert ray.address == "auto" and ray.num_workers is not None
    assert ray.num_actors * ray.gpus_per_actor <= gpus
    assert ray.num_workers * ray.cpus_per_worker + ray.num_actors * (ray.cpus_per_actor or 1.0) <= cpus
    assert config.selfplay.num_slots // ray.num_workers >= 1024  # large requests


def test_cluster_config() -> None:
    text, config = (FOLDER / "ray-cluster.yaml").read_text(encoding="utf-8"), read("ray-cluster.yaml")
    types = config["available_node_types"]
    assert config["head_node_type"] in types and types["head"]["resources"]["CPU"] == 0
    assert config["max_workers"] == sum(kind["max_workers"] for kind in types.values())
    (installing,) = config["setup_commands"]
    # By its file, with its extras: by its name pip would find another project.
    wheels = next(iter(config["file_mounts"]))
    assert f"{wheels}/windrow_mcts-*.whl)[train,ray,onnx]" in installing and "ray[" in installing
    assert not re.search(r"[\s\"']windrow\b", installing)
    assert any("ray start --head" in command for command in config["head_start_ray_commands"])
    command = re.search(r"windrow train.*?--run \S+", text, re.DOTALL)
    assert command is not None
    total = {name: sum(kind["max_workers"] * kind["resources"].get(name, 0) for kind in types.values()) for name in
             ("CPU", "GPU")}  # fmt: skip
    check_command(re.sub(r"\\\n#", " ", command[0]), cpus=total["CPU"], gpus=total["GPU"])


def test_kuberay_manifests() -> None:
    cluster, job = read("raycluster.yaml"), read("rayjob.yaml")
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": cluster["metadata"]["name"]}
    spec = cluster["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    head = spec["headGroupSpec"]["template"]["spec"]
    assert {mount["name"] for mount in head["containers"][0]["volumeMounts"]} == {
        place["name"] for place in head["volumes"]
    }
    claim = read("runs-claim.yaml")
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    claims = [place["persistentVolumeClaim"]["claimName"] for place in head["volumes"] if "emptyDir" not in place]
    assert claims == [claim["metadata"]["name"]]
    assert "/runs/" in job["spec"]["entrypoint"] and "/runs" in [
        m["mountPath"] for m in head["containers"][0]["volumeMounts"]
    ]
    cpus = gpus = 0.0
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        (container,) = group["template"]["spec"]["containers"]
        resources = container["resources"]
        assert resources["requests"] == resources["limits"]  # Ray counts what a pod is limited to
        assert container["image"] == head["containers"][0]["image"]
        cpus += group["replicas"] * int(resources["limits"]["cpu"])
        gpus += group["replicas"] * int(resources["limits"].get("nvidia.com/gpu", 0))
    check_command(job["spec"]["entrypoint"], cpus=cpus, gpus=gpus)
