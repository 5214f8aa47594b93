"""The manifest and the script of nbs/how_to_cluster.ipynb, checked as far as one machine can."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent


def written(name):
    """The file that a cell of the page writes."""
    cells = json.loads((ROOT / "nbs/how_to_cluster.ipynb").read_text(encoding="utf-8"))["cells"]
    (text,) = [
        "".join(cell["source"])
        for cell in cells
        if "".join(cell["source"]).startswith(f"%%writefile {name}\n")
    ]
    return text.partition("\n")[2] + "\n"


# The fields of KubeRay's RayJob that the manifest uses or might use next, written after the types in ray-
# operator/apis/ray/v1.
# Pod templates are left to Kubernetes' own schemas.
def fields(required=(), **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


WHOLE = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
TEXT = {"type": "string"}
ANY = {"type": "object"}
PARAMS = {"type": "object", "additionalProperties": TEXT}  # numbers have to be quoted
HEAD = fields(
    ["rayStartParams", "template"],
    rayStartParams=PARAMS,
    template=ANY,
    serviceType=TEXT,
    enableIngress=FLAG,
)
WORKERS = fields(
    ["groupName", "rayStartParams", "template"],
    groupName=TEXT,
    replicas=WHOLE,
    minReplicas=WHOLE,
    maxReplicas=WHOLE,
    numOfHosts=WHOLE,
    rayStartParams=PARAMS,
    template=ANY,
)
CLUSTER = fields(
    ["headGroupSpec"],
    rayVersion=TEXT,
    headGroupSpec=HEAD,
    workerGroupSpecs={"type": "array", "items": WORKERS},
    enableInTreeAutoscaling=FLAG,
    suspend=FLAG,
    authOptions=fields(mode={"enum": ["disabled", "token"]}, secretName=TEXT),
)
RAY_JOB = fields(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=ANY,
    spec=fields(
        ["rayClusterSpec"],
        entrypoint=TEXT,
        backoffLimit=WHOLE,
        activeDeadlineSeconds=WHOLE,
        runtimeEnvYAML=TEXT,
        shutdownAfterJobFinishes=FLAG,
        ttlSecondsAfterFinished=WHOLE,
        suspend=FLAG,
        rayClusterSpec=CLUSTER,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"]},
    ),
)


def check_manifest(job):
    """Raise what is wrong: the job's own fields, then each pod as Kubernetes would read it, strictly."""
    kubernetes = pytest.importorskip("kubernetes_validate")
    import jsonschema

    jsonschema.validate(job, RAY_JOB)
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        kubernetes.validate(
            {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": "pod"},
                "template": group["template"],
            },
            kubernetes.latest_version(),
            strict=True,
        )


@pytest.fixture
def job():
    return yaml.safe_load(written("rayjob.yaml"))


def pods(job):
    cluster = job["spec"]["rayClusterSpec"]
    return [
        group["template"]["spec"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])
    ]


def test_the_manifest_is_valid(job):
    check_manifest(job)


def test_the_desk_is_a_valid_pod_of_the_same_image_and_volume(job):
    kubernetes = pytest.importorskip("kubernetes_validate")
    desk = yaml.safe_load(written("desk.yaml"))
    kubernetes.validate(desk, kubernetes.latest_version(), strict=True)
    (container,) = desk["spec"]["containers"]
    assert {container["image"]} == {pod["containers"][0]["image"] for pod in pods(job)}
    assert all(desk["spec"]["volumes"][0] in pod["volumes"] for pod in pods(job))


def wrong_entry(job):
    job["spec"]["entryPoint"] = "x"


def wrong_param(job):
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0


def wrong_mount(job):
    pods(job)[1]["containers"][0]["volumeMounts"][0]["path"] = "/shared"


def wrong_limit(job):
    pods(job)[0]["containers"][0]["resources"]["limit"] = {"cpu": "2"}


def wrong_value(job):
    pods(job)[0]["containers"][0]["env"][1]["value"] = 0


@pytest.mark.parametrize(
    "mistake", [wrong_entry, wrong_param, wrong_mount, wrong_limit, wrong_value]
)
def test_a_mistake_in_the_manifest_is_found(job, mistake):
    from jsonschema import ValidationError

    job = deepcopy(job)
    mistake(job)
    with pytest.raises((KeyError, TypeError, ValueError, ValidationError)):
        check_manifest(job)


def test_the_manifest_agrees_with_itself_and_the_package(job):
    settings = configparser.ConfigParser()
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    spec = job["spec"]
    image = {pod["containers"][0]["image"] for pod in pods(job)}
    assert len(image) == 1 and image.pop().endswith(":" + settings["DEFAULT"]["version"])
    assert f"FROM rayproject/ray:{spec['rayClusterSpec']['rayVersion']}-py" in written("Dockerfile")
    assert f"ray[data]=={spec['rayClusterSpec']['rayVersion']}" in written("Dockerfile")
    for pod in pods(job):
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }
        assert {variable["name"]: variable["value"] for variable in container["env"]}[
            "TSTEVAL_CACHE"
        ].startswith("/shared/")
    assert spec["entrypoint"].count("/shared/") == 2 and "--address auto" in spec["entrypoint"]


def options_of(command):
    """Whether the command knows each option of a line."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from tsteval.cli import main; sys.exit(main(['evaluate', '--help']))",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    ).stdout
    return {option: option in told for option in re.findall(r"(?<!\S)--[a-z-]+", command)}


def test_the_command_knows_the_options_that_the_page_gives_it(job):
    line = next(
        line
        for line in written("evaluate.sbatch").splitlines()
        if line.startswith("tsteval evaluate")
    )
    known = options_of(job["spec"]["entrypoint"] + " " + line + " --gpus-per-worker")
    assert len(known) >= 5 and all(known.values()), known


def test_the_script_has_no_mistake_that_shellcheck_finds(tmp_path):
    script = tmp_path / "evaluate.sbatch"
    script.write_text(written("evaluate.sbatch"))
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    program = shutil.which(
        "shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if program is None:
        pytest.skip("needs shellcheck")
    done = subprocess.run(
        [program, "--shell=bash", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    script.write_text(written("evaluate.sbatch").replace('--output "$2"', "--output $2"))
    assert (
        subprocess.run(
            [program, "--shell=bash", script], capture_output=True, check=False
        ).returncode
        == 1
    )


def test_the_scripts_options_for_slurm_come_first():
    lines = written("evaluate.sbatch").splitlines()
    wanted = [line for line in lines if line.startswith("#SBATCH ")]
    assert lines[1 : 1 + len(wanted)] == wanted and all(
        re.fullmatch(r"#SBATCH --[a-z-]+=\S+", line) for line in wanted
    )


SRUN = """#!/usr/bin/env bash
while [[ "$1" == --* ]]; do
    [[ "$1" == --nodelist=* ]] && echo "${1#*=} ${*: -3}" >> "$STEPS"
    [[ "$1" == --output=* ]] && exec > "${1#*=}" 2>&1
    shift
done
exec "$@"
"""


@pytest.mark.all
def test_the_script_runs_on_two_nodes_that_are_one_machine(tmp_path):
    """Stand-ins for Slurm's two commands; Ray, the package and the processes are real."""
    pytest.importorskip("ray")
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for name, text in {
        "srun": SRUN,
        "scontrol": "#!/usr/bin/env bash\nprintf 'node1\\nnode2\\n'\n",
        "tsteval": f"#!{sys.executable}\nimport sys\nfrom tsteval.cli import main\nsys.exit(main())\n",
    }.items():
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    rows = [
        {
            "source": f"The bridge number {n} is splendid.",
            "output": f"Bridge {n} is a bridge.",
            "reference": f"The bridge number {n} is long.",
        }
        for n in range(12)
    ]
    (tmp_path / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "evaluate.sbatch").write_text(written("evaluate.sbatch"))
    job = str(os.getpid())
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(
            [str(stand_ins), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "PYTHONPATH": str(ROOT),
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_ID": job,
        "SLURM_CPUS_PER_TASK": "1",
        "STEPS": str(tmp_path / "steps"),
    }
    done = subprocess.run(
        [
            "bash",
            "evaluate.sbatch",
            "outputs.jsonl",
            "results",
            "--metrics",
            "bleu,rouge",
            "--block-rows",
            "2",
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, (
        done.stdout + done.stderr + "".join(path.read_text() for path in tmp_path.glob("ray-*.log"))
    )
    steps = (tmp_path / "steps").read_text().split("\n")
    assert sorted(step.split()[0] for step in steps if step) == ["node1", "node1", "node2"]
    from tsteval.evaluation import evaluate

    summary = json.loads((tmp_path / "results/summary.json").read_text())
    expected = evaluate(rows, ["bleu", "rouge"]).summary().to_dict("records")
    assert summary["systems"] == [
        {name: pytest.approx(value, abs=1e-9) for name, value in row.items()} for row in expected
    ]
    end = time.monotonic() + 40
    while (
        left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if belongs(path, job)]
    ) and time.monotonic() < end:
        time.sleep(0.5)
    assert not left and not Path(f"/tmp/ray-{job}").exists()


def belongs(path, job):
    try:
        return f"/tmp/ray-{job}/".encode() in path.read_bytes()
    except OSError:
        return False
